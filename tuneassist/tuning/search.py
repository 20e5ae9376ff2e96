"""One task's search: MetaSchedule's space generation and evolutionary search, a round at a time."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tuneassist.cost_model.graph import extract_batch
from tuneassist.tuning.build_cost import BuildCost
from tuneassist.tuning.database import Replayer, StoreDatabase, trace_to_json
from tuneassist.tuning.guides import Guide
from tuneassist.tuning.strata import Stratum, pick_evenly, strata
from tuneassist.tvm_api import IRModule, Schedule, Target, ms, structural_hash

_EXPLORE_POPULATION = 64
_PRIOR_SHARE = 0.75
"""Share of the first round that the guide's prior picks; the rest is as it was drawn."""
_SURPLUS = 4
_COSTLY = 1.35
"""Candidates predicted to take this many times the median to build wait until no others are left."""
_GENERATIONS = 3
_FIRST_POPULATION = 64
_POPULATIONS = (48, 1024)
"""Smallest and largest population of a guided round."""
_RANDOM_SHARE = 0.1
"""Share of a guided round that is drawn at random, as a check on the model."""
_STRATIFIED_POOL = 6
"""Random schedules drawn for each one that is picked evenly over the strata."""
_EMPTY_ROUNDS = 3
"""Rounds without a new candidate after which the space counts as exhausted."""
_NO_LIMIT = 1 << 30


@dataclass(frozen=True, slots=True)
class Candidate:
    """A schedule proposed, not yet measured."""

    schedule: Schedule
    trace_json: str
    module_hash: str
    source: str
    """`random`, `stratified` or `search`."""
    score: float | None = None
    predicted_secs: float | None = None


_Picked = tuple[Schedule, str, str]
"""Schedule, hash of its module, source."""


class SpaceError(Exception):
    """No schedule can be made for the workload."""


class TaskSearch:
    """Proposes candidates of one workload, each program at most once.

    The first round is random and depends on the seed alone. The later ones are evolved under the guide
    from what was measured.

    Args:
        mod: The workload.
        target: What it is tuned for.
        guide: Scores schedules.
        seed: Decides the random choices.
        threads: Threads that evolution may use.

    Raises:
        SpaceError: MetaSchedule has no schedule for the workload.
    """

    def __init__(self, mod: IRModule, target: Target, guide: Guide, *, seed: int, threads: int) -> None:
        self._mod = mod
        self._guide = guide
        self.database = StoreDatabase(target)
        self._replayer = Replayer(mod, target)
        self._build_cost = BuildCost(threads)
        self._seen: set[str] = set()
        self._reserve: list[Schedule] = []
        self._strata: Counter[Stratum] = Counter()
        self._empty_rounds = 0
        self._seed = seed
        self._threads = threads
        self._target = target
        self._population = _FIRST_POPULATION
        self._rounds = 0
        try:
            # One thread: with more, which of them draws which sample depends on timing.
            self._random = self._context("random", _EXPLORE_POPULATION, generations=0, threads=1)
            self._spaces = self._random.generate_design_space()
        except Exception as error:
            raise SpaceError(
                f"MetaSchedule made no schedule for this workload: {_first_line(error)}"
            ) from error
        if not self._spaces:
            raise SpaceError("MetaSchedule found no schedule rule that applies to this workload.")
        self._random.pre_tuning(
            _NO_LIMIT, _EXPLORE_POPULATION, self._spaces, self.database, ms.cost_model.RandomModel(seed=seed)
        )

    @property
    def exhausted(self) -> bool:
        """Whether nothing new was found several times in a row."""
        return self._empty_rounds >= _EMPTY_ROUNDS

    def replay(self, trace_json: str) -> Schedule:
        """The schedule of a stored trace.

        Raises:
            ValueError: It is no trace of this workload.
        """
        return self._replayer(trace_json)

    def mark_seen(self, module_hash: str) -> None:
        """Never propose the program of that hash."""
        self._seen.add(module_hash)

    def add_measured(self, schedule: Schedule, run_secs: tuple[float, ...]) -> None:
        """Let later rounds descend from a measured schedule."""
        self.database.add(self._mod, schedule.trace, run_secs)

    def learn_builds(self, candidates: Sequence[Candidate], secs: Sequence[float | None]) -> None:
        """Take in what builds cost (CPU seconds; None: did not end)."""
        self._build_cost.learn([candidate.schedule for candidate in candidates], secs)

    def costliest_first(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The candidates in the order in which building them side by side ends soonest."""
        ratios = self._build_cost.ratios([candidate.schedule for candidate in candidates])
        return [candidates[index] for index in np.argsort(-ratios, kind="stable")]

    def propose(self, count: int, *, budget_secs: float) -> list[Candidate]:
        """Return up to `count` new candidates; empty if none was found this time.

        Args:
            count: How many are wanted.
            budget_secs: About how long a guided search may take: it decides the next population.
        """
        picked = []
        if self._guide.informed and len(self.database):
            picked = self._evolve(count - round(_RANDOM_SHARE * count), budget_secs)
        picked += self._sample(count - len(picked))
        return self._candidates(picked)

    def collect(self, count: int, *, share: float, budget_secs: float) -> list[Candidate]:
        """Return up to `count` new candidates for a data set.

        The first third of them is drawn at random, the second evenly over the strata of random ones, the
        last by guided search.

        Args:
            count: How many are wanted.
            share: Share of the task's trials that was collected so far.
            budget_secs: As for `propose`.
        """
        if share >= 2 / 3:
            return self.propose(count, budget_secs=budget_secs)
        if share >= 1 / 3:
            return self._candidates(self._stratified(count))
        self._fill_reserve(count)
        return self._candidates(self._take(self._reserve, count, "random"))

    def _candidates(self, picked: list[_Picked]) -> list[Candidate]:
        if picked:
            self._empty_rounds = 0
        else:
            self._empty_rounds += 1
        return [
            Candidate(schedule, trace_to_json(schedule.trace), key, source)
            for schedule, key, source in picked
        ]

    def _stratified(self, count: int) -> list[_Picked]:
        self._fill_reserve(_STRATIFIED_POOL * count)
        keys = strata(extract_batch([schedule.mod for schedule in self._reserve], self._threads))
        positions = pick_evenly(keys, count, self._strata)
        chosen = [self._reserve[position] for position in positions]
        left = set(positions)
        self._reserve = [s for position, s in enumerate(self._reserve) if position not in left]
        return self._take(chosen, count, "stratified")

    def _fill_reserve(self, count: int) -> None:
        while len(self._reserve) < count:
            drawn = self._draw(self._random)
            if not drawn:
                return
            self._reserve += drawn

    def predict(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The candidates with what the guide says of them."""
        scores, secs = self._guide.predict([candidate.schedule for candidate in candidates])
        return [
            replace(candidate, score=score, predicted_secs=predicted)
            for candidate, score, predicted in zip(candidates, scores, secs, strict=True)
        ]

    def best_predicted(self, count: int, *, population: int, generations: int) -> list[Candidate]:
        """Up to `count` new candidates, the best of a population that evolves under the guide alone."""
        context = self._context("predicted", population, generations, self._threads)
        context.pre_tuning(_NO_LIMIT, count, self._spaces, self.database, self._guide.for_search())
        picked = self._take(self._draw(context), count, "search")
        found = self.predict(
            [
                Candidate(schedule, trace_to_json(schedule.trace), key, source)
                for schedule, key, source in picked
            ]
        )
        return sorted(found, key=lambda candidate: -(candidate.score or 0.0))

    def _evolve(self, count: int, budget_secs: float) -> list[_Picked]:
        started = time.monotonic()
        context = self._context("guided", self._population, _GENERATIONS, self._threads)
        self._rounds += 1
        context.pre_tuning(
            # More than is measured: programs measured before and costly builds are passed over.
            _NO_LIMIT, _SURPLUS * count, self._spaces, self.database, self._guide.for_search()
        )  # fmt: skip
        picked = self._take(self._affordable(self._draw(context)), count, "search")
        affordable = self._population * budget_secs / max(time.monotonic() - started, 1e-3)
        self._population = int(min(max(affordable, _POPULATIONS[0]), _POPULATIONS[1], 2 * self._population))
        return picked

    def _sample(self, count: int) -> list[_Picked]:
        # What is drawn and not used is kept: the strategy never draws a program twice.
        if len(self._reserve) < count:
            drawn = self._draw(self._random)
            self._reserve += drawn if len(self.database) else self._by_prior(drawn, count)
        return self._take(self._reserve, count, "random")

    def _affordable(self, schedules: list[Schedule]) -> list[Schedule]:
        """The schedules in their order, those that are costly to build last."""
        order = np.argsort(self._build_cost.ratios(schedules) > _COSTLY, kind="stable")
        return [schedules[index] for index in order]

    def _by_prior(self, schedules: list[Schedule], count: int) -> list[Schedule]:
        """The schedules with those first that the guide's prior holds to be fast, if they build soon."""
        prior = self._guide.prior(schedules)
        if prior is None:
            return schedules
        ordered = self._affordable([schedules[index] for index in np.argsort(prior, kind="stable")])
        best = ordered[: round(_PRIOR_SHARE * count)]
        chosen = {id(schedule) for schedule in best}
        return best + [schedule for schedule in schedules if id(schedule) not in chosen]

    def _context(self, name: str, population: int, generations: int, threads: int) -> Any:
        return ms.TuneContext(
            self._mod,
            target=self._target,
            space_generator="post-order-apply",
            search_strategy=ms.search_strategy.EvolutionarySearch(
                population_size=population,
                genetic_num_iters=generations,
                init_min_unmeasured=1,
                eps_greedy=0.0,
            ),
            task_name=name,
            # MetaSchedule's seeds lie in [1, 2^31 - 1].
            rand_state=1 + (self._seed * 7919 + self._rounds) % (2**31 - 2),
            num_threads=threads,
            logger=_quiet_logger(),
        )  # fmt: skip

    def _draw(self, context: Any) -> list[Schedule]:
        try:
            candidates = context.generate_measure_candidates()
        except Exception as error:
            raise SpaceError(f"MetaSchedule's search failed: {_first_line(error)}") from error
        return [candidate.sch for candidate in candidates or ()]

    def _take(self, schedules: list[Schedule], count: int, source: str) -> list[_Picked]:
        """Move up to `count` schedules whose programs are new off the front of the list."""
        taken: list[_Picked] = []
        while schedules and len(taken) < count:
            schedule = schedules.pop(0)
            key = module_hash(schedule.mod)
            if key not in self._seen:
                self._seen.add(key)
                taken.append((schedule, key, source))
        return taken


def module_hash(mod: IRModule) -> str:
    """Hash of a module's structure: equal programs have equal hashes, in any process."""
    return f"{structural_hash(mod) & (2**64 - 1):016x}"


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def _quiet_logger() -> logging.Logger:
    logger = logging.getLogger("tuneassist.metaschedule")
    logger.setLevel(logging.ERROR)
    logger.propagate = False
    return logger
