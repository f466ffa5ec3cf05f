"""Question banks in the format QTI 1.2, which Canvas imports: Settings, Import Course Content.

Requirement: each student gets other numbers. So each card is a group of an assessment, and Canvas
draws a question of each group.

Source: IMS Question and Test Interoperability 1.2, and the Canvas names of its questions
(``question_type``), as Canvas exports them.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from tinynode_course.recall.card import DrawnQuestion, spellings
from tinynode_course.recall.gift import as_html

QTI = "http://www.imsglobal.org/xsd/ims_qtiasiv1p2"
PACKAGE = "http://www.imsglobal.org/xsd/imsccv1p1/imscp_v1p1"
FIXED_DATE = (2020, 1, 1, 0, 0, 0)
"""The date of the files in the archive: the same questions make the same archive."""


def package(groups: Mapping[str, Sequence[DrawnQuestion]], title: str) -> bytes:
    """A zip file with the manifest and the assessment."""
    ident = "tinynode_questions"
    files = {
        "imsmanifest.xml": _text(_manifest(ident)),
        f"{ident}/{ident}.xml": _text(assessment(groups, title, ident)),
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name, FIXED_DATE), text)
    return content.getvalue()


def _text(root: Element) -> bytes:
    ElementTree.indent(root)
    found: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return found


def _manifest(ident: str) -> Element:
    root = Element("manifest", identifier=f"{ident}_manifest", xmlns=PACKAGE)
    metadata = SubElement(root, "metadata")
    SubElement(metadata, "schema").text = "IMS Content"
    SubElement(metadata, "schemaversion").text = "1.1.3"
    SubElement(root, "organizations")
    resources = SubElement(root, "resources")
    resource = SubElement(resources, "resource", identifier=ident, type="imsqti_xmlv1p2")
    SubElement(resource, "file", href=f"{ident}/{ident}.xml")
    return root


def assessment(groups: Mapping[str, Sequence[DrawnQuestion]], title: str, ident: str) -> Element:
    """The assessment: a section for each group, of which a question is drawn."""
    root = Element("questestinterop", xmlns=QTI)
    whole = SubElement(root, "assessment", ident=ident, title=title)
    _fields(whole, {"cc_maxattempts": "1"})
    top = SubElement(whole, "section", ident="root_section")
    for name, questions in groups.items():
        section = SubElement(top, "section", ident=f"group_{name}", title=name)
        selection = SubElement(SubElement(section, "selection_ordering"), "selection")
        SubElement(selection, "selection_number").text = "1"
        extension = SubElement(selection, "selection_extension")
        SubElement(extension, "points_per_item").text = "1.0"
        for number, question in enumerate(questions, 1):
            section.append(_item(question, f"{name}_{number}"))
    return root


def _fields(parent: Element, fields: Mapping[str, str]) -> None:
    metadata = SubElement(parent, "qtimetadata")
    for label, entry in fields.items():
        one = SubElement(metadata, "qtimetadatafield")
        SubElement(one, "fieldlabel").text = label
        SubElement(one, "fieldentry").text = entry


def _item(question: DrawnQuestion, ident: str) -> Element:
    item = Element("item", ident=ident, title=ident)
    kind = "multiple_choice" if question.choices else "short_answer"
    kind = "numerical" if question.is_number else kind
    facts = {"question_type": f"{kind}_question", "points_possible": "1.0"}
    _fields(SubElement(item, "itemmetadata"), facts)
    presentation = SubElement(item, "presentation")
    _material(presentation, as_html(question), "text/html")
    if question.choices:
        lid = SubElement(presentation, "response_lid", ident="response1", rcardinality="Single")
        choices = SubElement(lid, "render_choice")
        for letter, choice in question.lettered():
            _material(SubElement(choices, "response_label", ident=letter), choice, "text/plain")
    else:
        field = SubElement(presentation, "response_str", ident="response1", rcardinality="Single")
        options = {"fibtype": "Decimal"} if question.is_number else {}
        blank = SubElement(field, "render_fib", options)
        SubElement(blank, "response_label", ident="answer1")
    _scoring(item, question)
    feedback = SubElement(item, "itemfeedback", ident="general_fb")
    _material(SubElement(feedback, "flow_mat"), question.why, "text/plain")
    return item


def _material(parent: Element, text: str, kind: str) -> None:
    SubElement(SubElement(parent, "material"), "mattext", texttype=kind).text = text


def _scoring(item: Element, question: DrawnQuestion) -> None:
    """All points for the right answer; the explanation for each answer."""
    scoring = SubElement(item, "resprocessing")
    outcomes = SubElement(scoring, "outcomes")
    bounds = {"maxvalue": "100", "minvalue": "0", "varname": "SCORE", "vartype": "Decimal"}
    SubElement(outcomes, "decvar", bounds)
    always = SubElement(scoring, "respcondition", {"continue": "Yes"})
    SubElement(SubElement(always, "conditionvar"), "other")
    SubElement(always, "displayfeedback", {"feedbacktype": "Response", "linkrefid": "general_fb"})
    right = SubElement(scoring, "respcondition", {"continue": "No"})
    condition = SubElement(right, "conditionvar")
    if question.is_number:
        either = SubElement(condition, "or")
        _compare(either, "varequal", question.answer_text)
        between = SubElement(either, "and")
        middle, distance = float(question.answer), question.distance
        _compare(between, "vargte", f"{middle - distance:.6g}")
        _compare(between, "varlte", f"{middle + distance:.6g}")
    elif question.choices:
        letters = {choice: letter for letter, choice in question.lettered()}
        _compare(condition, "varequal", letters[str(question.answer)])
    else:
        for text in spellings(str(question.answer)):
            _compare(condition, "varequal", text)
    SubElement(right, "setvar", {"action": "Set", "varname": "SCORE"}).text = "100"


def _compare(parent: Element, name: str, text: str) -> None:
    SubElement(parent, name, respident="response1").text = text
