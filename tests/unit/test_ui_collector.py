"""Full collections wait until nobody types."""

from __future__ import annotations

from tuneassist.ui.collector import IdleCollector


class Counted:
    """A clock that is set, and a collection that counts."""

    now = 0.0
    collections = 0

    def collect(self) -> None:
        self.collections += 1


def test_it_collects_in_a_pause_and_not_while_keys_come() -> None:
    counted = Counted()
    collector = IdleCollector(lambda: counted.now, counted.collect)
    for tenth in range(100):
        counted.now = tenth / 10
        collector.input_seen()
        collector.tick()
    assert counted.collections == 0
    counted.now += 0.8
    collector.tick()
    collector.tick()
    assert counted.collections == 1
    counted.now += 4.0
    collector.tick()
    assert counted.collections == 1
    counted.now += 2.0
    collector.tick()
    assert counted.collections == 2


def test_someone_who_types_for_minutes_gets_one_a_minute() -> None:
    counted = Counted()
    collector = IdleCollector(lambda: counted.now, counted.collect)
    for second in range(1, 181):
        counted.now = float(second)
        collector.input_seen()
        collector.tick()
    assert counted.collections == 3
