"""Questions on past steps, with other numbers each time: for reviews, question banks and exams.

``card.py`` is a question with blanks, and finds the answer by a run. ``cards.py`` and
``more_cards.py`` have the questions of the course. ``review.py`` asks in a terminal.
"""
