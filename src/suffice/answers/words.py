"""Words, folded; and the few that requests and responses are read by, in many languages."""

import unicodedata
from functools import lru_cache

_UNSPACED = (("\u3040", "\u30ff"), ("\u3400", "\u9fff"), ("\uac00", "\ud7af"), ("\u0e00", "\u0e7f"))  # Kana to Thai


def is_unspaced(text: str) -> bool:
    return any(start <= character <= end for character in text for start, end in _UNSPACED)


@lru_cache(maxsize=512)
def folded(text: str) -> str:
    """Return a text as words in small letters with a space around each."""
    plain = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    kept = [one if one == "'" or one.isalnum() or is_mark(one) else " " for one in plain]
    return f" {' '.join(''.join(kept).split())} "


def is_mark(character: str) -> bool:
    return bool(character) and unicodedata.category(character).startswith("M")


def within(words: str, text: str) -> bool:
    """Whether words, folded, occur in a text, folded."""
    return (words.strip() if is_unspaced(words) else words) in text if words.strip() else False


class Words:
    """Words of which any may occur in a text: `*` is any ending, `_` a space."""

    def __init__(self, words: str) -> None:
        self.entries = frozenset(map(_entry, words.split()))

    def occur_in(self, text: str) -> bool:
        return any(entry in text for entry in self.entries)

    def are(self, text: str) -> bool:
        """Whether a folded text is one of them."""
        return any(entry.strip() == text.strip() for entry in self.entries)


def _entry(word: str) -> str:
    word = word.replace("_", " ").casefold()
    if is_unspaced(word):
        return word
    return f" {word[:-1]}" if word.endswith("*") else f" {word} "


ANSWER = Words("""
answer* final* verdict* result* score* rating* grade* label* categor* class* clasific* klassifi* классиф* decision*
sentiment intent* conclusion option* choice choose* antwort* ergebnis* urteil note bewertung kategorie réponse*
résultat* catégorie respuesta* resultado* veredicto categoría puntuación risposta* risultato voto categoria resposta*
nota antwoord categorie odpowied* kategori* cevap yanıt svar* ответ* итог* оценка результат* категори* 答案 结果 结论
评分 类别 分类 分類 答え 回答 結果 評価 カテゴリ 답 정답 결과 점수 분류 라벨 레이블 ラベル 标签 étiquette* etiqueta*
etichett* etykiet* метк* लेबल الإجابة الجواب النتيجة الفئة उत्तर जवाब श्रेणी
""")
"""What the place of an answer is called."""

BRIEF = Words("""
the_answer final_answer the_result number letter label* category class digit score rating true false yes id date value
amount ranking* iso move option die_antwort das_ergebnis zahl buchstabe* kategorie ziffer datum betrag la_réponse
le_résultat chiffre catégorie étiquette date montant la_respuesta el_resultado número letra categoría etiqueta fecha
dígito la_risposta il_risultato numero categoria etichetta a_resposta o_resultado valor het_antwoord getal datum
odpowiedź liczb* kategori* datę daty cevabı sayı tarih siffra svaret số ngày ответ число* цифр* букв* категори* метк*
дат* 数字 字母 答案 类别 标签 日期 記号 答えだけ 答えのみ ラベル カテゴリ 番号 日付 숫자 답만 레이블 번호 날짜 رقم حرف
الإجابة الفئة التاريخ अंक संख्या अक्षर श्रेणी लेबल तारीख
""")
"""What can be the whole of a reply."""

ONLY = Words("""
only just_the just_one exactly nothing_else single in_one_word one_word_only one_word_answer with_one_word
no_explanation without_explanation no_other no_other_text nothing_but nur ausschließlich genau_ein ein_wort
ein_einziges seulement uniquement juste un_seul une_seule solo sólo solamente únicamente una_palabra soltanto
una_parola una_sola apenas somente uma_palavra alleen slechts één_woord tylko wyłącznie jednym_słowem sadece yalnızca
tek_kelime endast bara chỉ только лишь одним_словом одно_слово 只 仅 だけ のみ 만 فقط केवल सिर्फ
""")
"""What says that there is to be nothing besides."""

OR = Words(
    "or oder ou o lub czy veya ya_da eller hoặc atau of или либо або أو أم या 或者 或 还是 または もしくは か 또는 혹은"
)
"""What stands before the last of some things to choose from."""

HOW_MANY = Words("""
how_many how_much how_old how_far how_tall how_long how_high how_fast how_heavy how_deep what_percent* what_fraction
what_number probability total_cost total_price wie_viel* wieviel* wie_alt wie_hoch wie_lange wie_weit wie_groß
wie_schnell wie_schwer wie_teuer combien quel_âge cuánt* cuant* quanto quanti quanta quante quantos quantas hoeveel ile
ilu kaç ne_kadar hur_många hur_mycket сколько скільки каков* bao_nhiêu mấy berapa πόσ* כמה 多少 几个 几天 几年 几岁
几次 几人 几只 几本 几元 几小时 几分 幾 何人 何個 何本 何枚 何円 何時間 何分 何日 何年 何歳 何回 何度 何冊 何匹 何キロ
何メートル いくつ いくら 何パーセント 몇 얼마 كم كام कितन* กี่ เท่าไร เท่าไหร่
""")
"""What asks for a number."""

YES = Words(
    "yes yeah yep ja jawohl oui si sí sì sim tak evet да так はい ええ 是 是的 对 有 예 네 نعم بنعم أجل हाँ हां có ya ναι"
)

NO = Words("""
no nope not never nein nicht nie niemals kein* non pas jamais nunca mai não nooit nee geen niet nej inte ikke hayır нет
не ні いいえ 否 不 不是 没有 아니요 아니오 아뇨 لا नहीं không tidak όχι
""")

VERDICT = Words("""
true false correct incorrect valid invalid wahr falsch richtig vrai faux verdadero falso vero verdadeiro waar onwaar
prawda fałsz doğru yanlış sant falskt benar salah đúng sai верно неверно правда ложь 正确 错误 正しい 誤り 맞음 틀림
صحيح خطأ सही गलत
""")
"""What says whether something is so."""
