"""Loads the cost model beside the rest of a run's start."""

from __future__ import annotations

import threading
from pathlib import Path

from tuneassist.cost_model.base import CostModel
from tuneassist.errors import TuneAssistError
from tuneassist.storage.models import packaged_checkpoint


def shipped_weights(kind: str, target_kind: str, *, wanted: bool = True) -> Path | None:
    """The checkpoint that came with the installation, if it knows such targets: it saw only CPUs."""
    return packaged_checkpoint(kind) if wanted and target_kind == "llvm" else None


class ModelLoader:
    """Loads torch and the cost model in a thread, while the first candidates are built.

    Not before: imports hold the interpreter, and what leads to the first build needs it.

    Args:
        kind: One of the kinds of `cost_model/registry.py`, or the path of a checkpoint.
        seed: Decides the first weights.
        threads: Threads that torch may use.
        checkpoint: Pretrained weights of that kind, which the model starts from.
    """

    def __init__(self, kind: str, *, seed: int, threads: int, checkpoint: Path | None = None) -> None:
        self._kind = kind
        self._checkpoint = checkpoint or (Path(kind) if Path(kind).is_file() else None)
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
        return self._checkpoint is not None

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

            named = self._kind if self._checkpoint is None else str(self._checkpoint)
            self._model = create_cost_model(named, seed=self._seed, threads=self._threads)
        except (TuneAssistError, ImportError, OSError) as error:
            # Raised where the model is first needed: in the thread nobody would see it.
            self._error = error
