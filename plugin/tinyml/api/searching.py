# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``tinyml.search``: models that fit a budget, and how good they get. Optuna proposes the candidates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tinyml.api import pareto
from tinyml.api.choices import CostName, Objective, Target
from tinyml.api.costs import Cost, cost
from tinyml.api.printed_tables import table
from tinyml.api.sources import ModelLike
from tinyml.base import whole_files
from tinyml.base.errors import ConfigError, TinymlError, ToolError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.boards import Board
from tinyml.harness.zephyr.boards import find_board
from tinyml.settings.written import parse_bytes

if TYPE_CHECKING:
    import optuna

BUDGETS = ("ram", "flash", "cycles", "milliseconds")
"""What a budget can limit, and what can be an objective besides the score."""

TrainResult = float | tuple[float, ModelLike]


@dataclass(frozen=True)
class Candidate:
    """One trial. ``costs`` has ram, flash, cycles and milliseconds; ``why`` is why it was not trained.

    ``costs["error"]`` is how far the estimate of instructions may be off, as a part of it, and cycles with
    it; if it is missing, that is not known.
    """

    number: int  # of the trial
    parameters: Mapping[str, Any]  # that ``build`` asked for
    costs: Mapping[str, float]  # by name
    score: float | None = None  # None if it was pruned or failed
    why: str = ""  # it was not trained; empty if it was


@dataclass(frozen=True, repr=False)
class SearchResult:
    """All candidates of a study, and those that no other one beats in every objective."""

    objectives: tuple[str, ...]  # score first
    budget: Mapping[str, float]  # the limits
    candidates: tuple[Candidate, ...]  # all finished trials
    front: tuple[Candidate, ...]  # by falling score

    def __repr__(self) -> str:
        trained = sum(one.score is not None for one in self.candidates)
        best = f"; best: {_words(self.front[0].parameters)}, {self.front[0].score:.4g}" if self.front else ""
        counts = f"{len(self.candidates)} candidates, {trained} trained, {len(self.front)} best"
        return f"<SearchResult: {counts}{best}>"

    @property
    def best(self) -> Candidate:
        """The one with the highest score."""
        if not self.front:
            raise ToolError("no candidate was trained", "a larger budget, smaller candidates, or more trials")
        return self.front[0]

    def plot(self, against: CostName | Literal[""] = "") -> str:
        """The score of all trained candidates over a cost, as SVG.

        :param against: the cost; default: the first cost objective
        """
        axis: str = against or next((name for name in self.objectives if name != "score"), "ram")
        if axis not in BUDGETS:
            raise ConfigError(f"unknown cost {axis!r}", f"one of: {', '.join(BUDGETS)}")
        points = [
            pareto.Point(
                found.costs[axis],
                found.score,
                f"{found.number}: {_words(found.parameters)}",
                best,
                label=f"{found.number}: {_words(found.parameters)}" if best else "",
            )
            for found in self.candidates
            if found.score is not None and axis in found.costs
            for best in [found in self.front]
        ]
        return pareto.scatter(points, axis, "score", self.budget.get(axis))

    def save_plot(self, path: str | Path, against: CostName | Literal[""] = "") -> None:
        """Write the plot as an SVG file.

        :param path: where
        :param against: the cost; default: the first cost objective
        """
        whole_files.save(Path(path), self.plot(against))

    def _repr_html_(self) -> str:
        head = ("trial", "score", *BUDGETS, "error bar", "parameters")
        rows = [
            (
                found.number,
                f"{found.score:.4g}",
                *(f"{found.costs[name]:,.6g}" if name in found.costs else "" for name in BUDGETS),
                f"± {found.costs['error']:.0%}" if "error" in found.costs else "unknown",
                _words(found.parameters),
            )
            for found in self.front
        ]
        return self.plot() + table(rows, head)


def search(
    build: Callable[[optuna.Trial], ModelLike],
    train: Callable[[optuna.Trial, ModelLike], TrainResult],
    *,
    budget: Mapping[str, str | float] | None = None,
    target: Target = "cortex-m3",
    mhz: float | None = None,
    board: str = "",
    objectives: Sequence[Objective] = ("score",),
    trials: int = 50,
    storage: str | Path | None = None,
    name: str = "tinyml",
    seed: int | None = None,
    example: Any = None,
    progress: bool = True,
) -> SearchResult:
    """Look for models with a high score within a budget.

    ``tinyml.cost`` estimates every candidate; one over the budget is pruned before ``train`` spends time on
    it.

    :param build: ``build(trial)`` makes an untrained model from parameters that it asks the trial for, as
        in Optuna: ``trial.suggest_int("width", 8, 64)``
    :param train: ``train(trial, model)`` returns the score (higher is better), or the score and the trained
        model, whose cost then counts
    :param budget: limits for ``ram``, ``flash`` (``"64K"``), ``cycles`` or, with ``mhz``, ``milliseconds``
        of one run
    :param target: the core
    :param mhz: the clock
    :param board: a board by Zephyr's name or PlatformIO's id: gives the target, its clock, and its RAM and
        flash as limits unless ``budget`` has others
    :param objectives: ``score``, and costs to keep low at the same time
    :param trials: how many trials the study gets, from all processes together
    :param storage: a journal file that several processes share, or the URL of a database for Optuna; a
        study in it is continued
    :param name: the study in the storage
    :param seed: makes the choices of the sampler repeatable
    :param example: example inputs of a PyTorch module or a JAX function, which determine the shapes: an
        array or tensor, a tuple of them, or one shape
    :param progress: show a bar on stderr
    """
    engine = _optuna()
    if board:
        place = find_board(board)
        target, mhz = place.target, mhz or place.mhz
        budget = {**_memory(place), **(budget or {})}
    if trials < 1:
        raise ConfigError(f"{trials} trials are too few", "1 or more")
    if budget is None:
        raise ConfigError("the search has no budget", "budget={'ram': '64K'}, or board='nrf52840dk'")
    limits = _limits(budget, mhz)
    wanted = _objectives(objectives, mhz)
    engine.logging.set_verbosity(engine.logging.ERROR)  # what train raises is raised here
    study = engine.create_study(
        storage=_storage(storage),
        sampler=engine.samplers.TPESampler(seed=seed),
        study_name=name,
        directions=["maximize" if key == "score" else "minimize" for key in wanted],
        load_if_exists=storage is not None,
    )
    states = engine.trial.TrialState
    finished = (states.COMPLETE, states.PRUNED)

    def objective(trial: optuna.Trial) -> tuple[float, ...]:
        model = build(trial)
        costs = _check(trial, model, limits, target, mhz, example)
        result = train(trial, model)
        score, trained = _trained(result)
        if trained is not None:
            costs = _check(trial, trained, limits, target, mhz, example)
        trial.set_user_attr("score", score)
        return tuple(score if key == "score" else costs[key] for key in wanted)

    left = trials - len(study.get_trials(deepcopy=False, states=finished))
    if left > 0:
        stop = engine.study.MaxTrialsCallback(trials, states=finished)
        study.optimize(objective, n_trials=left, callbacks=[stop], show_progress_bar=progress)
    return _result(study, wanted, limits, states)


def _trained(result: object) -> tuple[float, ModelLike | None]:
    """What ``train`` returned: the score, and the trained model if there is one."""
    parts = result if isinstance(result, tuple) else (result, None)
    try:
        score, model = parts
        return float(score), model
    except (TypeError, ValueError):
        raise ConfigError(
            f"train returned {result!r:.80}", "the score, a number, or (score, trained model)"
        ) from None


def _memory(board: Board) -> dict[str, str | float]:
    sizes = {"ram": board.ram_bytes, "flash": board.flash_bytes}
    return {kind: float(size) for kind, size in sizes.items() if size is not None}


def _check(
    trial: optuna.Trial,
    model: ModelLike,
    limits: Mapping[str, float],
    target: str,
    mhz: float | None,
    example: Any,
) -> dict[str, float]:
    """The costs of a model, which are kept with the trial; it is pruned if they exceed the budget."""
    engine = _optuna()
    try:
        costs = _costs(cost(model, target, example=example), mhz)
    except TinymlError as error:  # a candidate that does not compile is none
        trial.set_user_attr("why", error.message)
        raise engine.TrialPruned(error.message) from None
    trial.set_user_attr("costs", costs)
    for key, limit in limits.items():
        if key not in costs:
            raise ConfigError(f"the {key} of a model on {target} are not known", "another target or budget")
        if costs[key] > limit:
            why = f"{key}: {costs[key]:,.6g}, and the budget is {limit:,.6g}"
            trial.set_user_attr("why", why)
            raise engine.TrialPruned(why)
    return costs


def _costs(found: Cost, mhz: float | None) -> dict[str, float]:
    figures = {
        "ram": found.ram_bytes,
        "flash": found.flash_bytes,
        "cycles": found.cycles,
        "milliseconds": None if mhz is None else found.milliseconds(mhz),
        "error": found.instructions_error,
    }
    return {key: float(figure) for key, figure in figures.items() if figure is not None}


def _result(
    study: optuna.Study, wanted: Sequence[str], limits: Mapping[str, float], states: Any
) -> SearchResult:
    finished = (states.COMPLETE, states.PRUNED)  # another process may still train others
    candidates = {
        trial.number: Candidate(
            trial.number,
            dict(trial.params),
            trial.user_attrs.get("costs", {}),
            trial.user_attrs.get("score") if trial.state == states.COMPLETE else None,
            trial.user_attrs.get("why", "" if trial.state == states.COMPLETE else trial.state.name.lower()),
        )
        for trial in study.get_trials(deepcopy=False, states=finished)
    }
    best = {
        tuple(trial.values): trial.number for trial in reversed(study.best_trials)
    }  # of equals, the first
    front = [candidates[number] for number in sorted(best.values()) if number in candidates]
    front.sort(key=lambda found: -(found.score or 0.0))
    return SearchResult(tuple(wanted), dict(limits), tuple(candidates.values()), tuple(front))


def _limits(budget: Mapping[str, str | float], mhz: float | None) -> dict[str, float]:
    limits = {}
    for key, amount in budget.items():
        if key not in BUDGETS:
            raise ConfigError(f"a budget has no {key!r}", f"one of: {', '.join(BUDGETS)}")
        if key == "milliseconds" and mhz is None:
            raise ConfigError("a budget of milliseconds requires the clock rate", "mhz=80")
        is_text = isinstance(amount, str) and key in ("ram", "flash")
        try:
            limits[key] = float(parse_bytes(str(amount), "budget") if is_text else amount)
        except ValueError:
            raise ConfigError(f"{amount!r} is not a budget for {key}", "a number, such as 2e6") from None
    return limits


def _objectives(objectives: Sequence[str], mhz: float | None) -> tuple[str, ...]:
    allowed = ("score", *BUDGETS)
    unknown = [key for key in objectives if key not in allowed]
    if unknown or not objectives or len(set(objectives)) < len(objectives):
        raise ConfigError(f"objectives cannot be {objectives!r}", f"some of: {', '.join(allowed)}")
    if "milliseconds" in objectives and mhz is None:
        raise ConfigError("milliseconds as an objective require the clock rate", "mhz=80")
    return tuple(objectives)


def _storage(storage: str | Path | None) -> Any:
    """A path is a journal file of Optuna's; a URL is a database."""
    if storage is None or "://" in str(storage):
        return None if storage is None else str(storage)
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    return JournalStorage(JournalFileBackend(str(storage)))


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise ToolError("Optuna is not installed", "pip install 'west-tinyml[search]'") from None
    return optuna


def _words(parameters: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in parameters.items()
    )
