"""Loads the cost model beside the rest of a run's start."""

from __future__ import annotations

import threading

from tuneassist.cost_model.base import CostModel
from tuneassist.errors import TuneAssistError


class ModelLoader:
    """Loads torch and the cost model in a thread, while the first candidates are built.

    Not before: imports hold the interpreter, and what leads to the first build needs it.

    Args:
        kind: One of the kinds of `cost_model/registry.py`, or the path of a checkpoint.
        seed: Decides the first weights.
        threads: Threads that torch may use.
    """

    def __init__(self, kind: str, *, seed: int, threads: int) -> None:
        self._kind = kind
        self._seed = seed
        self._threads = threads
        self._model: CostModel | None = None
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None

    @property
    def kind(self) -> str:
        """As the run names it: a kind, or the path of a checkpoint."""
        return self._kind

    @property
    def pretrained(self) -> bool:
        """Whether the model knows something before the first trial."""
        return False

    def start(self) -> None:
        """Begin to load; does nothing the second time."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._load, daemon=True)
            self._thread.start()

    def get(self) -> CostModel:
        """The model, once it is loaded.

        Raises:
            TuneAssistError: The checkpoint can't be used.
        """
        self.start()
        assert self._thread is not None
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._model is not None
        return self._model

    def _load(self) -> None:
        try:
            from tuneassist.cost_model.registry import create_cost_model

            self._model = create_cost_model(self._kind, seed=self._seed, threads=self._threads)
        except (TuneAssistError, ImportError, OSError) as error:
            # Raised where the model is first needed: in the thread nobody would see it.
            self._error = error
