"""Sweep files that come with mkldist, by name."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
FOLDERS = (_PACKAGE / "sweeps", _PACKAGE.parent / "sweeps")
"""Folders of these files: in an installation, and in a clone of the repository."""
PAPERS = "papers"


def shipped_sweeps() -> dict[str, Path]:
    """Return the sweep files that come with mkldist, those of papers among them, by name."""
    folder = _folder()
    if folder is None:
        return {}
    files = [*folder.glob("*.toml"), *(folder / PAPERS).glob("*.toml")]
    return {file.stem: file for file in sorted(files, key=lambda file: file.stem)}


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
