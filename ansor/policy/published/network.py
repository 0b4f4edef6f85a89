"""`ActorCriticNetwork`: one hidden layer, a softmax over actions and a value; trained by Adam."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ansor.config.policies import ADAM, ActorCriticConfig

Floats64 = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Transitions:
    """Steps of walks whose programs have been measured.

    Attributes:
        states: `[B, S] float64`, before each step.
        possible: `[B, N] bool`, the actions that change a state.
        actions: `[B] int64`, the action taken.
        rewards: `[B] float64`, of the next state.
    """

    states: Floats64
    possible: Mask
    actions: npt.NDArray[np.int64]
    rewards: Floats64


class ActorCriticNetwork:
    """A policy and a value of states, which share a hidden layer of rectified linear units.

    Args:
        states: S, numbers of a state.
        actions: N.
        config: sizes and rates.
        rng: of the first weights, uniform in ``± 1 / sqrt(inputs)`` as PyTorch's `Linear`.
    """

    def __init__(
        self, states: int, actions: int, config: ActorCriticConfig, rng: np.random.Generator
    ) -> None:
        self._config = config
        shapes = [(states, config.hidden), (config.hidden, actions), (config.hidden, 1)]
        self.weights: list[Floats64] = []
        for inputs, outputs in shapes:
            bound = 1 / np.sqrt(max(inputs, 1))
            self.weights.append(rng.uniform(-bound, bound, (inputs, outputs)))
            self.weights.append(rng.uniform(-bound, bound, outputs))
        self._adam = _Adam([w.shape for w in self.weights], config.learning_rate)

    def probabilities(self, states: Floats64, possible: Mask) -> Floats64:
        """`[B, N]`: of each action in `states [B, S]`; 0 for actions that are not `possible [B,
        N]`.

        Deviation: NNI's walks also draw actions that change nothing.
        """
        return _softmax(self._hidden(states) @ self.weights[2] + self.weights[3], possible)

    def values(self, states: Floats64) -> Floats64:
        """`[B]`: expected rewards in `states [B, S]`."""
        value: Floats64 = (self._hidden(states) @ self.weights[4] + self.weights[5])[:, 0]
        return value

    def train(self, done: Transitions) -> None:
        """One step of Adam down the gradient of `loss`."""
        self.weights = self._adam.stepped(self.weights, self.gradient(done))

    def loss(self, done: Transitions, advantage: Floats64) -> float:
        """``sum(-log pi(action) * advantage + value_weight * (reward - value)^2)``.

        Args:
            done: the measured transitions.
            advantage: `[B]`, a constant: the first term does not train the value.
        """
        chosen = self.probabilities(done.states, done.possible)[_at(done.actions)]
        error = done.rewards - self.values(done.states)
        policy = -np.log(chosen) * advantage
        return float(np.sum(policy + self._config.value_weight * error**2))

    def gradient(self, done: Transitions) -> list[Floats64]:
        """The gradient of `loss` for each of `weights`; the advantage is the reward less the value.

        Deviation: NNI minimises ``log pi * advantage``, which makes good actions rare, and trains
        the value by this term, too.
        """
        hidden = self._hidden(done.states)
        advantage = done.rewards - self.values(done.states)
        logits = self.probabilities(done.states, done.possible)
        logits[_at(done.actions)] -= 1
        logits *= advantage[:, None]
        value = -2 * self._config.value_weight * advantage[:, None]
        inner = (logits @ self.weights[2].T + value @ self.weights[4].T) * (hidden > 0)
        pairs = [(done.states, inner), (hidden, logits), (hidden, value)]
        return [g for inputs, outputs in pairs for g in (inputs.T @ outputs, outputs.sum(axis=0))]

    def _hidden(self, states: Floats64) -> Floats64:
        """`[B, H]`."""
        hidden: Floats64 = np.maximum(states @ self.weights[0] + self.weights[1], 0)
        return hidden


class _Adam:
    """Adam (`AdamConfig`)."""

    def __init__(self, shapes: list[tuple[int, ...]], learning_rate: float) -> None:
        self._rate, self._steps = learning_rate, 0
        self._mean = [np.zeros(shape) for shape in shapes]
        self._square = [np.zeros(shape) for shape in shapes]

    def stepped(self, weights: list[Floats64], gradients: list[Floats64]) -> list[Floats64]:
        """The weights after a step."""
        self._steps += 1
        first, second = ADAM.first_decay, ADAM.second_decay
        pairs = zip(self._mean, self._square, gradients, strict=True)
        for mean, square, gradient in pairs:
            mean += (1 - first) * (gradient - mean)
            square += (1 - second) * (gradient**2 - square)
        rate = self._rate * np.sqrt(1 - second**self._steps) / (1 - first**self._steps)
        moments = zip(weights, self._mean, self._square, strict=True)
        return [w - rate * m / (np.sqrt(s) + ADAM.epsilon) for w, m, s in moments]


def _softmax(logits: Floats64, possible: Mask) -> Floats64:
    """`[B, N]`: over the possible actions of each row."""
    kept = np.where(possible, logits, -np.inf)
    raised = np.exp(kept - kept.max(axis=1, keepdims=True))
    shares: Floats64 = raised / raised.sum(axis=1, keepdims=True)
    return shares


def _at(actions: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The index of each row's action."""
    return np.arange(len(actions)), actions
