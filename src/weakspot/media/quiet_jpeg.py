"""Pillow's JPEG reader without its look at EXIF when a file is opened."""

from PIL import JpegImagePlugin


class QuietJpegFile(JpegImagePlugin.JpegImageFile):
    """A JPEG file whose resolution is not looked up in EXIF: a damaged tag there would warn, though the image is sound."""

    def _read_dpi_from_exif(self) -> None:
        return
