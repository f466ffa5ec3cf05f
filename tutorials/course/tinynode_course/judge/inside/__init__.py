"""The program of the child: files with the standard library and NumPy, without the course.

``wire`` is for both sides: the judge imports the module, and the child finds the file.
"""
