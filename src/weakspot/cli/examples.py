"""One example for the help of every command: the line that people type most."""

EXAMPLES = {
    "demo": "weakspot demo",
    "init": "weakspot init my-project --data photos/ --classifier model.onnx",
    "run": "weakspot run -p my-project",
    "serve": "weakspot serve -p my-project",
    "doctor": "weakspot doctor -p my-project",
    "ask": 'weakspot ask -p my-project "green apples"',
    "nearest": 'weakspot nearest -p my-project "on a shelf" --class apple --top 20',
    "compare": "weakspot compare old-model new-model --out comparison",
    "report": "weakspot report -p my-project",
    "repair": "weakspot repair -p my-project --compare",
    "export": "weakspot export -p my-project --to fiftyone --out for-fiftyone",
    "import": "weakspot import tasks.json --from label-studio --out labelled.csv",
    "generate": 'weakspot generate -p my-project "a green apple" --class apple --to generated -n 30',
    "search": "weakspot search -p my-project --class apple --target pear",
    "counterfactual": 'weakspot counterfactual -p my-project --class apple "a green apple"',
    "check": "weakspot check -p my-project --policy policy.toml --junit check.xml",
    "watch": "weakspot watch -p my-project --every 600",
    "mcp": "weakspot mcp -p my-project",
    "ingest": "weakspot ingest -p my-project",
    "embed": "weakspot embed -p my-project",
    "discover": "weakspot discover -p my-project --method directions",
    "verify": "weakspot verify -p my-project",
    "align": "weakspot lab align text-side -p my-project --column caption",
    "bench": "weakspot lab bench --kind rare --worlds 2 --out bench",
    "collective": "weakspot lab collective first-model second-model --out family",
    "reproduce": "weakspot lab reproduce clarify --stand-in --small --out clarify",
    "sweep": "weakspot lab sweep -p my-project --synthetic generated --to sweep",
    "refine": "weakspot lab refine -p my-project",
    "decode": "weakspot lab decode -p my-project --generator unclip:MODEL",
    "adversarial": "weakspot lab adversarial -p my-project --to hard-set",
}


def example_of(command: str) -> str:
    """Return the last line of a command's help."""
    return f"Example: {EXAMPLES[command]}"
