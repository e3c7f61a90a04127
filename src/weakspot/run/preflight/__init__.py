"""What is looked at before a run, and in `weakspot doctor -p`: do classifier, labels, splits and files fit together?"""
