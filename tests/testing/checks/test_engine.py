from weakspot.data.engine.local import LocalEngine


class Greedy:
    def map(self, function, items, *, lost=None):
        return iter(
            [function(item) for item in (list(zip(range(3_000), items, strict=False)) and [])]
        )


class Unordered:
    def map(self, function, items, *, lost=None):
        return iter(sorted((function(item) for item in items), reverse=True))


class Swallowing:
    def map(self, function, items, *, lost=None):
        for item in items:
            try:
                yield function(item)
            except KeyError:
                continue


class Wrapping:
    def map(self, function, items, *, lost=None):
        try:
            yield from map(function, items)
        except KeyError as error:
            raise RuntimeError("failed") from error


def test_check_engine__broken_in_one_way(rejected):
    assert "order" in rejected("engines", "results_come_in_order", Unordered)
    assert "swallowed" in rejected("engines", "errors_reach_the_caller", Swallowing)
    assert "arrived as RuntimeError" in rejected("engines", "errors_reach_the_caller", Wrapping)
    assert "wrong" in rejected("engines", "items_are_taken_as_needed", Greedy)
    assert "items were taken for 5" in rejected(
        "engines", "items_are_taken_as_needed", lambda: LocalEngine(queue_depth=5_000)
    )
