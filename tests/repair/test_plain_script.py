from tests.repair.test_reproduction import NAMES, export, run_script, write_images, write_onnx

from weakspot.models.onnx.classifier import OnnxClassifier


def test_script__a_claim_that_is_not_so_is_noticed(tmp_path):
    paths = write_images(tmp_path / "photos")
    classifier = OnnxClassifier(path=write_onnx(tmp_path / "model.onnx"), class_names=NAMES)
    export(tmp_path / "out", classifier, paths, off_by=1)
    done = run_script(tmp_path / "out", tmp_path)
    assert done.returncode == 1
    assert "overall:" in done.stdout
    assert "; claimed: (" in done.stdout.splitlines()[0]
