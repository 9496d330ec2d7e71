"""Names that a corpus is made from. All of them are invented; no edition uses all of them."""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


COUNTRIES = (
    "Orvane", "Tessaly", "Merrow", "Kaldria", "Voskar", "Illune", "Pernath", "Sorrel", "Brannoch", "Yevane", "Dorrin",
    "Aquila",
)  # fmt: skip
"""Country of each edition."""
FIRST = _words(
    "Adela Agnes Albin Amalia Anselm Astrid Balthus Beata Bernard Cecily Clemens Corinna Damian Dorothea Edgar Elena"
    " Emeric Esther Fabian Felicia Florian Frida Gerard Greta Gustav Hanna Hector Helena Henrik Hilda Ignaz Irene"
    " Isidor Jasper Johanna Josepha Julian Karla Kaspar Konrad Lena Leonard Lucas Ludmila Magnus Marta Matthias Minna"
    " Nestor Nora Oskar Ottilie Pascal Petra Quentin Rafael Regina Roland Rosa Sabine Silvan Sophia Theodor Thekla"
    " Ulrich Ursula Valentin Verena Viktor Walburga Xaver Zita"
)
LAST_BEGIN = _words("Ast Bar Ber Cor Dal Eb Fal Gar Hal Il Jor Kel Lan Mar Nor Ol Per Quin Ros Sel Tor Ul Var Wes")
LAST_END = _words("ach berg don ell feld gren hart ings lund mann nick quist rath son stein ten vik wood")
PLACE_BEGIN = _words("Ald Bel Bram Cald Dun Esk Fen Gal Har Ith Kirk Lin Mor Nant Oak Pen Rav Stan Thorn Ulv Wend Yar")
PLACE_END = _words("bridge burn combe dale field ford gate ham haven hurst ley mere minster moor port stead wick")
PLACE_BEFORE = ("Upper", "Lower", "New", "Old", "Great", "Little")
PROVINCES = _words("Ambermark Coldshire Eastvale Fernland Greyreach Highmoor Lakeside Northam Redcliff Westfall")
PROFESSIONS = _words(
    "architect astronomer botanist cartographer chemist composer economist engraver geologist historian jurist"
    " librarian linguist mathematician naturalist novelist painter philosopher physician playwright poet printer"
    " sculptor surveyor translator zoologist"
)
EMBLEMS = _words(
    "Anchor Acorn Beacon Bell Candle Compass Crane Crown Falcon Garland Hammer Harp Heron Ivory Lantern Laurel Lyre"
    " Mirror Oak Olive Owl Pillar Quill Raven Rose Sable Sickle Spindle Star Swan Thistle Torch Willow"
)
SORTS = ("Academy", "College", "Guild", "Institute", "Press", "School", "Society")
FIELDS = _words(
    "Agriculture Anatomy Architecture Astronomy Botany Chemistry Engraving Geology History Law Letters Mathematics"
    " Mechanics Medicine Mining Music Navigation Optics Painting Philosophy Printing Surveying"
)
ADJECTIVES = _words(
    "Ancient Bitter Broken Burning Crooked Crystal Distant Drowned Empty Faithful Forgotten Frozen Gentle Gilded Hidden"
    " Hollow Idle Last Lonely Lost Narrow Nameless Northern Painted Pale Patient Quiet Restless Ruined Scarlet Secret"
    " Silent Silver Sleeping Stolen Sunken Tangled Unfinished Velvet Wandering White Winter"
)
NOUNS = _words(
    "Archive Atlas Bridge Cathedral Cellar Chapel Clockmaker Coast Court Ferry Forest Fountain Garden Gate Harbour"
    " Hillside House Island Journey Kingdom Lake Letter Lighthouse Market Meadow Mill Mountain Orchard Palace Quarry"
    " River Road Sailor Season Shepherd Shore Stair Station Theatre Tower Valley Village Voyage Well Window"
)
ORDINALS = ("First", "Second", "Third", "Fourth", "Fifth", "Sixth")
GATHERINGS = ("Congress", "Exhibition", "Fair", "Festival", "Games", "Regatta")
