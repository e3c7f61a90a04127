"""The models of a project on its images, each image asked once and the answer kept."""
