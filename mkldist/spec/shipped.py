"""Sweep files that come with mkldist, and numbers of papers to hold them to, by name."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
FOLDERS = (_PACKAGE / "sweeps", _PACKAGE.parent / "sweeps")
"""Folders of these files: in an installation, and in a clone of the repository."""
PAPERS = "papers"
PUBLISHED = Path(PAPERS, "published")


def shipped_sweeps() -> dict[str, Path]:
    """Return the sweep files that come with mkldist, those of papers among them, by name."""
    folder = _folder()
    if folder is None:
        return {}
    files = [*folder.glob("*.toml"), *(folder / PAPERS).glob("*.toml")]
    return {file.stem: file for file in sorted(files, key=lambda file: file.stem)}


def published_numbers(given: Path) -> Path:
    """Return the file of published numbers that a path or the name of a paper's sweep means.

    Parameters
    ----------
    given : Path
        A file, which is returned unchanged, or the name of a sweep whose paper has numbers.

    Examples
    --------
    >>> published_numbers(Path("level_table1")).name
    'level_table1.csv'
    >>> published_numbers(Path("of-my-own.csv")).name
    'of-my-own.csv'
    """
    folder = _folder()
    if folder is None or given.is_file() or len(given.parts) != 1:
        return given
    file = folder / PUBLISHED / f"{given.name.removesuffix('.csv')}.csv"
    return file if file.is_file() else given


def sweep_file(given: Path) -> Path:
    """Return the sweep file that a path or name means.

    Parameters
    ----------
    given : Path
        A file, which is returned unchanged, or the name of a sweep: of ``NAME.toml`` in this folder
        or in ``sweeps/``, or of one that comes with mkldist.

    Examples
    --------
    >>> sweep_file(Path("quickstart")).name
    'quickstart.toml'
    >>> sweep_file(Path("of-my-own.toml")).name
    'of-my-own.toml'
    """
    if given.is_file() or len(given.parts) != 1:
        return given
    name = f"{given.name.removesuffix('.toml')}.toml"
    here = next((file for file in (Path(name), Path("sweeps", name)) if file.is_file()), None)
    return here or shipped_sweeps().get(given.name.removesuffix(".toml"), given)


def _folder() -> Path | None:
    return next((folder for folder in FOLDERS if folder.is_dir()), None)
