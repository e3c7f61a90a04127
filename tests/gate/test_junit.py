from xml.etree import ElementTree as ET

from weakspot.gate.formats import junit_xml


def _cases(text):
    return {case.get("name"): case for case in ET.fromstring(text).iter("testcase")}


def test_junit_xml__has_one_case_an_entry_with_the_verdict(result):
    cases = _cases(junit_xml(result()))
    (nasty,) = (name for name in cases if name.startswith("disc: "))
    assert "\x01" not in nasty
    assert cases[nasty].find("failure").get("message").endswith("is bad.")
    assert cases["small"].find("skipped") is not None
    assert [child.tag for child in cases["known"]] == ["system-out"]
    assert {case.get("classname") for case in cases.values()} == {
        "weakspot.slice_accuracy",
        "weakspot.regressions",
        "weakspot.slice_gap",
    }


def test_junit_xml__counts_are_those_of_its_cases(result):
    for made in (result(), result(unsure_fails=True)):
        root = ET.fromstring(junit_xml(made))
        for element in (root, *root.iter("testsuite")):
            found = {
                "tests": len(list(element.iter("testcase"))),
                "failures": len(list(element.iter("failure"))),
                "skipped": len(list(element.iter("skipped"))),
                "errors": 0,
            }
            assert {name: int(element.get(name)) for name in found} == found


def test_junit_xml__slices_of_the_same_title_stay_apart(result):
    made = result()
    control = made.entries[0].model_copy(update={"slice_id": "def"})
    cases = _cases(junit_xml(made.model_copy(update={"entries": (*made.entries, control)})))
    assert len(cases) == 5


def test_junit_xml__has_what_pytest_writes_itself(result):
    root = ET.fromstring(junit_xml(result()))
    assert root.tag == "testsuites"
    written_by_pytest = {
        "testsuite": {"name", "errors", "failures", "skipped", "tests", "time", "timestamp"}
    }
    written_by_pytest |= {
        "testcase": {"classname", "name", "time"},
        "failure": {"message"},
        "skipped": {"message"},
    }
    for tag, attributes in written_by_pytest.items():
        assert all(attributes <= set(element.attrib) for element in root.iter(tag)), tag
