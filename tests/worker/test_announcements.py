"""Announcements go to the listener of this process, to a topic of Dask, or nowhere."""

from __future__ import annotations

import pytest

from mkldist.worker.announcements import announcer, listen, stop_listening


def test_a_listener_of_this_process_is_told_until_it_stops():
    heard = []
    listen("topic", heard.append)
    announce = announcer("topic")
    announce({"run": "r", "state": "complete"})
    stop_listening("topic")
    announce({"run": "s", "state": "complete"})
    assert heard == [{"run": "r", "state": "complete"}]


def test_without_a_topic_nothing_is_announced():
    heard = []
    listen("topic", heard.append)
    announcer("")({"run": "r", "state": "complete"})
    stop_listening("topic")
    assert heard == []


def test_a_topic_that_nobody_here_listens_to_is_one_of_dask():
    with pytest.raises(ValueError, match="worker"):  # this process is none
        announcer("elsewhere")
