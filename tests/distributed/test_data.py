"""Parts of tables for ranks."""

import pytest

from arboost.distributed.data import balanced_ranges, ranges_without, workers_near_data


@pytest.mark.parametrize("n_parts", [0, 1, 2, 5, 9, 40])
@pytest.mark.parametrize("n_ranks", [1, 2, 3, 7])
def test_all_parts_in_order(rng, n_parts, n_ranks):
    weights = rng.exponential(size=n_parts) + 1e-9
    ranges = balanced_ranges(weights, n_ranks)
    assert len(ranges) == n_ranks
    assert [part for one in ranges for part in one] == list(range(n_parts))
    if n_parts >= n_ranks:
        assert all(ranges)


def test_balance_is_by_weight():
    assert balanced_ranges([1, 1, 1, 1, 1, 1, 6], 2) == [range(6), range(6, 7)]


def test_workers_near_the_data():
    ranges = [range(2), range(2, 3)]
    holders = [["a"], ["b"], ["a"]]
    assert workers_near_data(ranges, [1, 5, 2], holders, ["a", "b", "c"]) == ["b", "a"]
    assert workers_near_data(ranges, [1, 5, 2], holders, ["c", "d"]) == ["c", "d"]
    assert workers_near_data(ranges, [1, 5, 2], [[], [], []], ["c", "d"]) == ["c", "d"]


@pytest.mark.parametrize(
    ("lost", "expected"),
    [
        ([], [range(2), range(2, 4), range(4, 6)]),
        ([0], [range(4), range(4, 6)]),
        ([1], [range(3), range(3, 6)]),
        ([2], [range(2), range(2, 6)]),
        ([0, 2], [range(6)]),
        ([1, 2], [range(6)]),
    ],
)
def test_parts_of_lost_ranks(lost, expected):
    ranges = [range(2), range(2, 4), range(4, 6)]
    assert ranges_without(lost, {"train": ranges}, {"train": [1] * 6}) == {"train": expected}


def test_tables_without_parts():
    ranges = [range(0), range(0), range(0)]
    assert ranges_without([1], {"one": ranges}, {"one": []}) == {"one": [range(0), range(0)]}
