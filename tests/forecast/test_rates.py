"""Rates as a file, and as this machine has them, with `measuring`."""

from __future__ import annotations

from dataclasses import fields

import pytest

from mkldist.forecast.measuring import measured_rates, rates_finding
from mkldist.forecast.rates import Rates, rates_path, store_rates, stored_rates

RATES = Rates(2e-9, 1e-9, 1e-10, 3e-4, 2e-5, 0.01, 3e-10, 0.005, 0.002, 0.0005, 5e8)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))


def test_stored_rates_come_back():
    assert stored_rates() is None
    store_rates(RATES)
    assert stored_rates() == RATES


@pytest.mark.parametrize("damage", [b"", b"{}", b"[1]", b'{"pass_value_seconds": 1e-9}'])
def test_damaged_rates_count_as_none(damage):
    store_rates(RATES)
    rates_path().write_bytes(damage)
    assert stored_rates() is None


def test_a_changed_digit_is_found():
    store_rates(RATES)
    content = rates_path().read_bytes()
    rates_path().write_bytes(content.replace(b"0.005", b"0.006"))
    assert stored_rates() is None


@pytest.mark.slow
def test_this_machine_has_rates_in_the_order_that_its_work_must_have(tmp_path):
    rates = measured_rates(tmp_path)
    assert all(getattr(rates, field.name) > 0 for field in fields(rates))
    # An exponential costs more than to read a number; sixteen vectors less than sixteen passes.
    assert rates.kernel_value_seconds > 0.5 * rates.pass_value_seconds
    assert rates.vector_value_seconds < rates.pass_value_seconds
    assert list(tmp_path.iterdir()) == []


def test_the_doctor_stores_what_it_measures(tmp_path, monkeypatch):
    monkeypatch.setattr("mkldist.forecast.measuring.measured_rates", lambda folder: RATES)
    finding = rates_finding(tmp_path)
    assert "500 million kernel values computed or 1000 million read" in finding.words
    assert "500 tasks" in finding.words
    assert stored_rates() == RATES


def test_a_disk_that_refuses_rates_is_a_finding(tmp_path, monkeypatch):
    def refused(folder):
        raise OSError("No space left on device")

    monkeypatch.setattr("mkldist.forecast.measuring.measured_rates", refused)
    finding = rates_finding(tmp_path)
    assert "No space" in finding.words
    assert not finding.hinders
