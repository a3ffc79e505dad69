"""The turns of phrase by which requests are known: what asks for a text, what for an answer, and in which form."""

import re


def _pattern(*parts: str) -> re.Pattern[str]:
    return re.compile("".join(parts), re.IGNORECASE)


POLITE = (
    r"\W*(?:(?:hi|hello|hey|dear)\b[^,.!?]{0,20}[,.!]\s*)?(?:(?:ok(?:ay)?|now|then|also|so|and|but|please|pls|"
    r"kindly|just|first|next|finally|lastly|your (?:task|job|goal) is to|you (?:should|must|are to|need to)|"
    r"i(?:['’]d| would) (?:like|love)(?: you)? to|i (?:need|want)(?: you)? to|i (?:need|want)"
    r" (?:some )?help (?:to|with)|i(?:'m| am) trying to|help me(?: to)?|help(?: me)? with|(?:can|could|would|will)"
    r" (?:you|u)(?: please| kindly| maybe| also| quickly)?(?: help(?: me)?(?: to)?)?|would you mind|let(?:['’]s|"
    r" us)|try to|go ahead and|based on (?:this|that|the above),?|in (?:your own words|(?:one|two|three|a few|"
    r"\d+(?:-\d+)?) (?:short )?sentences?),?|bitte|kannst du(?: mir)?|könntest du|können sie|por favor|puedes|"
    r"podrías|s'il te plaît|peux-tu|pouvez-vous)[\s,:]+){0,6}+"
)
NO_SUM = r"(?!\s+(?:[-\d.(\\$√∫]|x\b|the (?:expression|equation|fraction|integral|sum|value|polynomial|number)))"

TEXTS = (
    r"(?:poem|haiku|limerick|sonnet|song|lyric|rap|verse|story|tale|joke|pun|riddle|slogan|tagline|catchphrase|"
    r"motto|title|headline|caption|subject line|hashtag|tweet|post|blog|article|essay|paragraph|e-?mail|letter|"
    r"message|note|reply|comeback|speech|toast|script|dialogue|scene|bio|biography|description|outline|summary|"
    r"synopsis|recap|overview|breakdown|gist|takeaway|recipe|itinerary|plan|schedule|routine|checklist|template|"
    r"code|snippet|function|program|query|regex|regular expression|command|one-?liner|sql|unit test|test case|"
    r"docstring|proposal|report|cv|resume|press release|agenda|names?(?! of)|idea|tip|suggestion|recommendation|"
    r"example|advice|analogy|metaphor|greeting|wish|pick-?up line|quote|compliment|prompt|quiz|list|table|diagram|"
    r"explanation|walkthrough|tutorial|translation|synonym|rewrite|version|pros and cons|(?:word |"
    r"practice )?problem|exercise|questions|worksheet|flashcard|puzzle|poll|survey|lesson|workout|movie|book|gift|"
    r"(?:fun )?fact|sentence|phrase|formula(?= to\b)|thought|opinion|feedback|help|hand|gedicht|witz|geschichte|"
    r"(?:fake|dummy|mock|placeholder|synthetic|sample|made-up|random) \w+|"
    r"poème|blague|histoire|poema|chiste|cuento|historia|résumé)(?:s|es)?"
)

WRITES = _pattern(
    POLITE,
    r"(?:write(?! (?:only |just |down |out )?(?:your|the) (?:final )?(?:answer|letter|number|result|equation|"
    r"fraction)|\s+\$?[-\d.,/\\]+\S* (?:as|in))|rewrite|re-write|reword|rephrase|paraphrase|draft|compose|"
    r"author(?= (?:an?|the|some)\b)|"
    r"pen\b|create|generate(?! the next)|craft|come up with|brainstorm|invent|role-?play|play\b|",
    r"translate|transcribe|summari[sz]e|sum up|tl;?dr|eli5|condense|shorten|polish|proofread|edit (?:this|the|my)|"
    r"correct (?:the|this|my|any|all|these)|improve|refactor|debug|fix|implement|code\b|program\b|build|design|"
    r"develop|optimi[sz]e (?:this|the|my)|document|review|critique|critici[sz]e|comment on|give (?:me )?feedback|"
    r"make (?:this|it|me|a|an|my|the|that)|turn (?:this|it|these|the)|format|reformat|convert (?:this|it|these|"
    r"the following|my|the (?:code|text|list|csv|json|function)|[^.\n]{0,60}\bto (?:yaml|json|csv|xml|html|markdown|"
    r"sql|an? ))|",
    r"continue|go on\b|finish (?:this|the|my)|complete (?:this|the|my) (?:story|poem|code|function|paragraph|"
    r"sentence)|recommend|suggest|advise|propose|plan (?:a|an|my|our|me|the)|organi[sz]e|outline|prepare|list\b|"
    r"enumerate|tell (?:me|us) (?:a|an|some|something|about|more|your)|talk (?:to me )?about|teach|show me|"
    r"walk me|guide me|sing|say (?:something|hi|hello|thank|goodbye)|wish|congratulate|respond to (?:this|the|my)|"
    r"reply to (?:this|the|my)|interpret|roast|motivate|encourage|cheer|inspire|entertain|surprise me|(?:ask|quiz|"
    r"challenge|interview) me|understand\b|learn\b|what else|give me (?:the|a) (?:gist|summary|main|key|rundown|"
    r"overview)|",
    r"add (?:a|an|some|comments|tests|type|error|more)\b|name (?:\d+|two|three|four|five|ten|some|a few|my|this|"
    r"our|ideas)|simplify",
    NO_SUM,
    r"|expand",
    NO_SUM,
    r"|analy[sz]e",
    NO_SUM,
    r"|compare(?! (?:[-\d$]|which))|contrast|discuss|describe|define|elaborate|clarify|explore|argue|debate|"
    r"speculate|reflect on|pick a random|choose a random|",
    r"schreib|verfasse|übersetze?\b|fasse?\b|formuliere|erzähl|dichte|erstelle|entwirf|verbessere|korrigiere|"
    r"nenne? mir|gib mir (?:ein|ein paar|tipps|ideen)|beschreib|erklär|",
    r"écri[st]\b|écrivez|rédige|tradui|résume|raconte|explique|décri[st]|propose|corrige|reformule|"
    r"donne-moi (?:des|un)|",
    r"escrib|redacta|traduce|traduzca|resume\b|resumir|cuéntame|explica|describe|sugiere|reescrib|dame (?:ideas|un)|",
    r"scrivi|traduci|riassumi|spiega|raccontami|escreva|escreve|traduza|conte\b|sugira)",
)
EXPLAINS = _pattern(
    POLITE,
    r"(?:you are (?:now )?an? |you(?:\'re|’re) an? |act as|imagine|pretend|think of|explain|justify|show (?:your|"
    r"all|the) (?:work|steps?|working|reasoning)|describe your|give (?:me )?(?:a |an )?(?:brief |"
    r"short )?(?:reason|explanation)|why(?: or why not)?\?)",
)
WISHES = _pattern(
    r"\b(?:gives?|need|want|like|love|make|get|have|looking for|got|know|do|send|share|offer|provide|produce|"
    r"what(?:['’]s| is| are| would be))\b(?: me| us| you)?(?: with)? (?:an?\b|some|any|another|a few|few|several|"
    r"\d+|one|two|three|four|five|ten|more|good|your)\b",
    r"[^.?!:\n]{0,60}?\b",
    TEXTS,
    r"\b",
)
TITLE = _pattern(
    r"\W*(?!(?:what|which|who|when|where|is|are|does|do|how|extract|find|identify)\b)(?:[\w'’-]+ ){0,4}?",
    TEXTS,
    r"(?: please\W*$|\W*$| (?:for|about|on|to|of|from|that|with|in|announcing)\b)",
)
"""A request that only names the text it wants: "Slogan for a gym"."""

_LANGUAGE = (
    r"(?:english|german|french|spanish|italian|portuguese|japanese|chinese|mandarin|korean|russian|arabic|latin|"
    r"dutch|swedish|polish|turkish|hindi|greek|hebrew|thai|vietnamese)"
)
OPEN = _pattern(
    POLITE,
    r"(?:(?:can|could) you tell me |do you know |i(?:'m| am) wondering |i wonder |tell me )?(?:",
    r"[^?]*\b(?:trade-?offs|pros and cons)\b|what (?:does|do|is) (?:this|the|that|my)\b[^?]*\b(?:do|mean|doing)"
    r"\W*$|what(?:['’]s| is| are) (?:this|the) \w+ about|what(?:['’]s| is| are) (?!the \w+ language)[^?]{1,60} in ",
    _LANGUAGE,
    r"\W*$|what(?:['’]s| is) (?:the |an? )?(?:\w+ ){0,2}?(?:command|regex|query|one-liner|snippet|syntax|script|"
    r"shortcut) (?:to|for|that)\b|",
    r"(?:which|what|who|is|are)\b[^?]{0,60}\b(?:better|worth|favou?rite|prefer(?:red|able)?|best (?!describes|"
    r"explains|fits|matches|represents|completes))\b|",
    r"why\b|how (?:do|does|did|can|could|would(?! you (?:classify|rate|label|categori))|should|might|to|come|is|"
    r"are|was|were|about|has|have|will)\b|what (?:do|would) (?:you|people)\b|what (?:should|would (?:happen|it|"
    r"life|a)|could (?:i|we)|can (?:i|we|you)|will happen|happens|happened|might|causes|makes|does .* mean|if|"
    r"kind of advice)\b|",
    r"what(?:['’]s| is| are) (?:an? good|some|your\b|the (?:best|main|key|major|most common|pros|cons|benefits|"
    r"advantages|disadvantages|drawbacks|differences?|reasons?|causes?|effects?|symptoms|steps|ways|advice|"
    r"point of|purpose of|idea|meaning of|significance|implications|history|story|deal))\b(?![^?]*\d)|",
    r"what(?:['’]s) (?:up|new|going on)|should (?:i|we|my)\b|"
    r"is it (?:worth|a good idea|okay|ok|normal|bad)\b|any (?:ideas|tips|advice|"
    r"suggestions|thoughts|recommendations)\b|thoughts\b|is there an? (?:good|better|easy|way)\b|",
    r"tell me (?:about|more)|(?:who|how|what) are (?:you|u|things)\b|do you (?:like|think|feel|have|want|remember|"
    r"believe|enjoy)\b|are you (?:an? )?(?:ai|human|robot|bot|sentient|conscious|real|there|okay|ok|alive|sure)\b|"
    r"can you (?:feel|think|dream|see|hear|help)\b|",
    r"i(?:['’]m| am) (?:feeling|so|really|very|sad|stressed|bored|worried|looking)\b|i feel\b|i(?:['’]ve| have)"
    r" been\b|i don['’]t know\b|",
    r"warum|wieso|weshalb|wie (?:kann|geht|funktioniert|macht|soll)|was (?:soll|kann) ich|pourquoi|comment\b|"
    r"por qué|cómo\b|perché|come (?:si|posso))",
)
ADVICE = _pattern(
    r"\b(?:should|would|could) (?:i|we|you)\b|\b(?:better|best|worth|prefer)\b",
)
SYSTEM_TEXT = _pattern(
    POLITE,
    r"(?:you (?:always |only )?)?(?:translate|summari[sz]e|rewrite|paraphrase|proofread|(?:write|draft|compose|"
    r"create|generate|produce|"
    r"suggest)\b[^.]*?\b",
    TEXTS,
    r"\b)|.*\b(?:stay in character|role-?play|copy-?writer|translator|story-?teller|ghost-?writer|summari[sz]er|"
    r"(?:title|name|headline|caption|slogan|post|content|code|query|sql|test|prompt|text) (?:generator|writer|"
    r"engine))\b",
)
"""A task of the system's that makes a text of whatever the user says."""

DEFINES = _pattern(
    r"\W*what(?:['’]s| is| are) (?:an? )?(?!the\b|wrong|left|missing|next|this|that|it\b|my\b|too\b|\w+ (?:of|in|"
    r"for)\b)"
    r"[^\W\d_]+(?:[ -](?!of\b|in\b|for\b|than\b|with\b|minus\b|plus\b|times\b)[^\W\d_]+){0,2}\W*",
)
WHO = re.compile(r"(?i:who (?:is|was|are|were)) (?:[A-Z]\S*)(?: [A-Z]\S*){0,3}")
SMALL_TALK = _pattern(
    r"\W*(?:(?:many|ok(?:ay)?|oh|great|perfect|awesome|cool|no|yes|wow|ah),? ){0,4}(?:thanks?|thank you|thx|ty|"
    r"cheers|hi|hello|hey|yo|good (?:morning|afternoon|evening|night|day)|bye|goodbye|see you|ok(?:ay)?|k|cool|"
    r"great|awesome|nice|perfect|lol|haha+|wow|got it|sounds good|sure|yes|no|yep|nope|never ?mind|how are you|"
    r"how(?:['’]s| is) it going|what['’]s up|sup|sorry|congrats|well done|good job|you['’]re welcome|"
    r"happy birthday|merry christmas|test|testing|ping|",
    r"danke|vielen dank|hallo|guten (?:tag|morgen|abend)|tschüss|moin|merci|bonjour|salut|bonsoir|au revoir|"
    r"gracias|muchas gracias|hola|buenos días|buenas|adiós|grazie|ciao|buongiorno|obrigad[oa]|olá|谢谢|你好|ありがとう|"
    r"こんにちは|спасибо|привет)\b",
    r"(?![^?]{0,40}\b(?:what|who|when|where|which|whose|how (?:many|much)|why|can you|could you)\b)"
    r"[^?\n]{0,60}(?:\?\W*|\W*)",
)

_UNIT = (
    r"(?:words?|letters?|numbers?|numerals?|digits?|labels?|options?|choices?|categor(?:y|ies)|class(?:es)?|"
    r"answers?|integers?|values?|dates?|years?|names?|city|country|language|percentages?|amount|figure|results?|"
    r"time|yes|no|true|false|sentiment|intent|score|rating|fraction|decimal|wort|zahl|buchstaben?|mot|nombre|"
    r"lettre|palabra|número|letra|jahr|ja|oui|sí)"
)
_YES_NO = r"(?:yes or no|yes/no|true or false|true/false|ja oder nein|ja/nein|oui ou non|oui/non|sí o no|sí/no|y/n)"
FORM = _pattern(
    r"\\boxed|\bboxed\b|\bfinal (?:numerical |numeric )?answer\b|\bendgültige antwort\b|\bréponse finale\b|"
    r"\brespuesta final\b|",
    r"\b(?:in|with|using|as) (?:(?:only|just|exactly) )?(?:one|a single|1|einem|un seul|una sola) (?:word|letter|"
    r"number|label|wort|buchstaben|mot|palabra|digit|integer)\b|\b(?:one|single)[- ]word (?:answer|label|reply|"
    r"response)\b|",
    r"\b(?:answer|reply|respond|response|output|return|say|write|give|provide|print|state|choose|pick|select|"
    r"antworte|réponds|responde)\b[^.!?\n]{0,40}\b",
    _YES_NO,
    r"|\(",
    _YES_NO,
    r"\)|^\W*",
    _YES_NO,
    r"\b|\b",
    _YES_NO,
    r"\W*$|",
    r"\b(?:only|just|exactly|nothing but|simply|nur|seulement|uniquement|solo|sólo) (?:with |in |by |as |mit |"
    r"avec |con |par )?(?:the |a |an |one |one of |its |your |that |this |der |die |dem |das |le |la |el |un |"
    r"una |einem? )?(?:\w+ ){0,2}?",
    _UNIT,
    r"\b(?! (?:of|code|text|version|file|translation))|",
    r"\b(?:answer|reply|respond|output|return) (?:only )?(?:with |as )(?:the |a |an |one |one of )(?:\w+ ){0,2}?",
    _UNIT,
    r"\b|\b(?:the )?(?:answer|reply|output) (?:should|must) be (?:a |an |one |the )?(?:single )?",
    _UNIT,
    r"\b|",
    r"\b(?:end|finish|conclude) (?:your \w+ )?with\b|\b(?:output|return|reply with|give|answer with) (?:the |"
    r"a )?(?:\w+ )?",
    _UNIT,
    r" (?:only|alone|and nothing else)\b|\bjust the (?:\w+ )?(?:e-?mail )?address\b|\bno (?:explanation|"
    r"other text|words|units|punctuation)\b",
)

HOW_MANY = _pattern(
    r"\bhow (?:many|much|old|tall|far|long|fast|high|heavy|deep|wide|large|big|likely)\b|\bwie ?viele?\b|"
    r"\bcombien\b|\bcuánt[oa]s?\b|\bquant[oia]s?\b|\bwie (?:alt|hoch|lang|weit|groß|schnell)\b",
)
_MEASURES = (
    r"(?:total|sum|product(?= of)|quotient|average|mean|median|mode(?= of)|number|percent(?:age)?|probability|area|"
    r"volume|"
    r"perimeter|circumference|price|cost|value|remainder|ratio|speed|distance|population|height|length|width|"
    r"weight|age|amount|balance|profit|revenue|discount|interest|tip|tax|salary|temperature|boiling point|"
    r"melting point|freezing point|square root|cube root|result|least|greatest|smallest (?:number|integer)|"
    r"largest (?:number|integer)|derivative|integral|determinant|slope|radius|diameter|hypotenuse|"
    r"difference between (?:the )?\S*\d|score|rating|atomic number|fraction|duration|frequency|mass|density|rate|"
    r"limit|roots?|solutions?|coefficient|angle|gcd|lcm)"
)
NUMBERS = _pattern(
    r"\b(?:what(?:['’]s| is| was| will be| would be| are)?|extract|find|identify|give me|state|determine|report|"
    r"return) (?:(?:the|its|his|her|their) )?(?:\w+ ){0,3}?",
    _MEASURES,
    r"\b|\bwhat(?:['’]s| is)\s+[-\d(\\$√|]|\b(?:what|which) (?:percent|percentage|fraction|number|amount|size|age|"
    r"port|page|room|floor|gate|platform|seat|line)"
    r"\b|\bwhat\b[^?]{0,60}\b(?:in total|altogether|pay|cost|earn|weigh|come to|add up to|amount to)\b|"
    r"\bwhat(?:['’]s| is) [^?]{0,40}[+^²³√=]|\d+, ?\d+, ?\d+|",
    r"^\W*(?:calculate|compute|evaluate|solve\b(?=.*[\d=]|.*\b[xyz]\b)|find (?:x|y|all)\b|convert \S*\d|round|"
    r"count(?! to\b)|simplify|work out|"
    r"add \d|subtract|multiply|divide|estimate|factor|differentiate|integrate|convert (?!this|it\b|these|"
    r"the following|my|the (?:code|text|list|csv|json|function))|express|write \S*\d)|\b(?:rate|score)"
    r"\b[^.?!]{0,60}\b(?:from|on|out of|scale|between|\d)|",
    r"\bquel (?:est le )?(?:nombre|prix|âge)|\bberechne|\bcalcule|\bcalcula\b|=\s*\?|"
    r"^[-\d\s().,+*/×÷^%$€£]*\d[-\d\s().,+*/×÷^%=!]*\??$|\b(?:in|to) (?:decimal|binary|hex|hexadecimal|octal|celsius|"
    r"fahrenheit|(?:roman|arabic) (?:numerals?|numbers?)|km|miles|kg|pounds|metres|meters|feet|inches)\W*$",
)
SCALE = _pattern(
    r"\b(?:from|of|scale|between|rate|score|rating|priority|severity)"
    r"\b[^.?!\n]{0,60}?\b[01] ?(?:\([^()]*\) ?)?(?:-|–|to|and|through) ?(\d+)\b|\([01] ?(?:-|–|to) ?(\d+)\)",
)
YEARS = _pattern(
    r"\b(?:what|which) year\b|\b(?:just|only) the year\b|\byear only\b|\bin welchem jahr|\ben quelle année|"
    r"\ben qué año|\bin che anno|\bem que ano",
)
TIMES = _pattern(
    r"\b(?:what|which) time\b|\bwhat o'clock\b|\bum wie ?viel uhr|\bà quelle heure|\ba qué hora",
)
DATES = _pattern(
    r"\b(?:what|which) (?:date|day|month|weekday)\b|(?:^|[,:] )(?:and )?(?:when|wann|quand|cuándo)\b|"
    r"\b(?:what(?:['’]s| is| was)|extract|pull|get|find|identify|give me|return) the (?:\w+ ){0,2}?(?:date|"
    r"deadline|due date)|\ban welchem tag",
)
_BE = (
    r"(?:is|are|was(?! ist| sind)|were|does|do|did|can(?! you)|could(?! you)|will(?! you)|would(?! you)|has|have|"
    r"had|may|might|must|am|isn't|aren't|doesn't|don't|didn't|can't"
)
AUXILIARY = _pattern(
    r"(?:^|[,:;] |\b(?:then|and|so) )\W{0,4}",
    _BE,
    r"|ist|sind|hat|haben|kann|können|darf|muss|gibt es|est-ce|est-il|est-elle|peut-on|es|está|son|puede|hay|é|è)"
    r"\b[^?]*\?\W*$|^",
    _BE,
    r")\b[^.!]*$|\b(?:whether|determine if|check if|tell me if)\b",
)
NAMES = _pattern(
    r"(?:^|[,:;] |\b(?:and|of|in|to|by|for|from|at|so|then) )\W{0,4}(?:who|whose|whom|which|where|what)\b|"
    r"^\W*(?:name|identify|extract|pull|get|give me|state|detect|classify|label|categori[sz]e|guess|find|"
    r"determine|decide|choose|select|pick|assign|predict|fill in|the (?:name|capital|author|country|city|language)"
    r"|capital of)\b|\b(?:wer|welche[rsnm]?|wo|was ist|wie heißt|qui|quel(?:le)?|où|quién|qué|cuál|dónde|chi|"
    r"quale|dove)\b",
)
LOOKS_UP = _pattern(
    r"\W*(?:the )?(?:[\w'’-]+ )?(?:(?P<number>",
    _MEASURES,
    r"|atomic (?:number|weight)|molar mass|half-life|gdp|calories|year|number)|author|capital|inventor|founder|"
    r"president|ceo|currency|(?:chemical )?(?:formula|symbol)|plural|opposite|antonym|past tense|winner|director|"
    r"odd one out|(?!(?:b|lat|nic|cool|cheap)est)\w{3,}est \w+|next (?:number|term|letter)|country code|time zone|"
    r"birthday|date|synonym)\b"
    r"(?! (?:to|about|ideas|plan|on|columns?|cells?)\b)[^\n]{0,12}?(?: (?:of|for|in)\b(?! (?:my|our|this|an?)\b)|:)",
)
"""A request that only names what it wants to know: "boiling point of ethanol"."""
CLASSIFIES = _pattern(
    POLITE,
    r"(?:classify|detect|identify|determine|decide|label|categori[sz]e|extract(?! all)|rate|score|grade|predict|"
    r"tell (?:me )?"
    r"(?:which|whether|if)|assign|route|judge)\b",
)
DIRECT = _pattern(
    r"\W*(?:(?:please|can you|could you|would you|do you know|tell me|i wonder|i want to know|i need to know|so|"
    r"and|then|ok(?:ay)?|hi|hello|hey|kannst du mir sagen|weißt du|¿)\b[\s,:]*(?:please )?){1,4}+",
)
"""What stands before a question without changing it."""

LISTS = _pattern(
    r"\b(?:(?:exactly |only )?one of(?: the following| these| those)?(?: \w+){0,2}|either|"
    r"classif\w+[^.\n]{0,80}? (?:as|into|in)|label\w*[^.\n]{0,60}? as|categori[sz]e[^.\n]{0,60}? (?:as|into)|"
    r"route[^.\n]{0,60}? to|tag[^.\n]{0,40}? as|(?:possible |valid |allowed |available )?(?:options|labels|"
    r"categories|classes|intents|choices|departments|queues|teams)(?: are)?|(?:choose|select|pick)(?= ?:)|"
    r"choose (?:from|between|among)|"
    r"select (?:from|between)|pick (?:from|between)|klassifiziere[^.\n]{0,60}? als|(?:answer|respond|reply|output|"
    r"return|say|print)(?: only)?(?: with)?(?: only)?|antworte mit|determine (?:if|whether)[^.\n]{0,60}? is)(?!\w)",
)
LEAD_IN = _pattern(
    r"\s*(?:(?:exactly|only|just|either)\s+)?(?:(?:one|1)"
    r" of\b)?(?:\s*the following)?(?:(?:\s+\w+){0,2}?\s*[:=\n–-]\s*)?\s*[\[({]?\s*",
)
"""What may stand between the announcement of a list and its first label."""
