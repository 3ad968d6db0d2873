"""Seeds and the named random streams of a run."""

from itertools import combinations

import numpy as np
import pytest

from l0anneal._util.seeds import STREAMS, seed_of, stream_of


def test_every_kind_of_random_state_becomes_an_integer():
    assert seed_of(7) == seed_of(np.int64(7)) == 7
    assert seed_of(None) != seed_of(None)
    assert seed_of(np.random.SeedSequence(1)) == seed_of(np.random.SeedSequence(1))
    assert seed_of(np.random.default_rng(1)) == seed_of(np.random.default_rng(1))
    assert seed_of(np.random.RandomState(1)) == seed_of(np.random.RandomState(1))


@pytest.mark.parametrize("bad", [-1, True, 1.5, "seven"])
def test_other_random_states_are_refused(bad):
    with pytest.raises(ValueError, match="random_state must be"):
        seed_of(bad)


def collide(first, second):
    """Whether two keys of `STREAMS` can be equal for some indices."""
    return len(first) == len(second) and all(
        a is ... or b is ... or a == b for a, b in zip(first, second)
    )


def colliding_names(streams):
    """Pairs of streams of one sampler that can be the same; its name is the first word."""
    # no annealing has 2³² − 3 chains, no cross-validation as many folds, and folds count from 1
    allowed = {
        ("annealing chain", "annealing heated back"),
        ("annealing chain", "annealing rehearsal"),
        ("path annealing", "path fold"),
        ("path fold", "path shuffle"),
    }
    return {
        (a, b)
        for a, b in combinations(sorted(streams), 2)
        if a.split()[0] == b.split()[0] and collide(streams[a], streams[b])
    } - allowed


def test_no_two_streams_of_a_sampler_are_the_same():
    assert colliding_names(STREAMS) == set()


def test_a_collision_is_seen():
    assert colliding_names({"path annealing": (0,), "path shuffle": (0,)}) == {
        ("path annealing", "path shuffle")
    }


def test_streams_are_those_of_their_keys():
    state = stream_of(3, "temper replica", 5).generate_state(4)
    expected = np.random.SeedSequence(3, spawn_key=(0, 5)).generate_state(4)
    np.testing.assert_array_equal(state, expected)
    for indices in ((), (1, 2)):
        with pytest.raises(ValueError, match="needs 1 indices"):
            stream_of(3, "kick chain", *indices)


def test_a_new_name_has_a_stream_of_its_own():
    keys = {stream_of(3, name, 5).spawn_key for name in ("restart", "other")}
    assert len(keys) == 2
    assert all(len(key) == 3 and key[2] == 5 for key in keys)
