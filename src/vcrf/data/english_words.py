"""The words of the small English corpus, written by hand: lists by word class, the frequent ones first.

Many words stand in two lists on purpose (light, run, watch, cold, close): only their neighbours tell which it is.
"""

from __future__ import annotations

NOUNS = """
time light watch run walk play book water house door work hand night plan train garden letter morning street window room
table park ring play line point place visit rest show talk sleep dream dance hope help answer question cook drink fish
duck guard guide paint picture stone river road wind rain snow storm fire fall spring summer winter fly bear saw nail
hammer cut break turn start stop end move drive ride race swim climb jump step look smile laugh cry call sound bell song
story paper report record test study lesson school teacher student child boy girl man woman friend farmer doctor nurse
lawyer judge driver pilot sailor soldier king queen cat dog horse cow sheep bird mouse fox wolf lion tree flower leaf
root seed apple pear bread cheese butter milk tea coffee cake soup plate cup glass bottle spoon knife fork key lock box
bag coat hat shoe shirt dress button pocket chair bed lamp clock mirror wall roof floor corner bridge tower castle
church market shop bank office factory station harbour boat ship plane car bus bicycle wheel engine machine tool rope
chain wire pipe pump tank mill field hill mountain valley forest lake sea island beach sand coast cloud sky star moon
sun shadow dust smoke ice heat cold colour shape size weight price cost cheque coin money salary tax bill budget debt
profit loss trade deal offer order demand supply need wish choice chance risk danger fear anger joy love trust doubt
faith reason cause result effect change growth decline increase rise drop balance measure number figure score goal match
game team player coach crowd fan prize winner leader member group class party vote law rule right duty crime thief
police prison court trial witness victim murder attack defence battle war peace treaty border nation state city village
town council mayor minister president speech debate opinion idea thought mind memory feeling sense nerve brain heart
bone blood skin face eye ear nose mouth tooth arm leg foot finger knee back head voice breath medicine illness fever
cough pain wound cure patient hospital kitchen cellar attic stair gate fence path square statue museum theatre library
gallery concert orchestra violin piano drum trumpet singer actor painter writer poet novel poem chapter page sentence
word name list map chart sign signal message parcel stamp envelope phone screen camera film photograph battery cable
station platform ticket passenger luggage journey holiday hotel guest host neighbour uncle aunt cousin mother father
sister brother daughter son baby wedding birthday gift surprise secret promise joke mistake accident problem solution
method theory experiment discovery invention education information population situation decision direction collection
relation tradition condition position election operation kindness darkness happiness weakness illness sickness
government movement agreement apartment argument treatment friendship leadership membership freedom wisdom childhood
neighbourhood ability activity community electricity quality difference distance importance silence absence presence
carpenter gardener baker butcher waiter porter plumber electrician mechanic engineer scientist biologist chemist
physicist historian librarian musician politician magician fisherman postman fireman policeman shepherd blacksmith
lantern candle blanket pillow curtain carpet cupboard drawer shelf basket bucket barrel ladder wheelbarrow shovel rake
needle thread ribbon feather wing tail claw fur shell web nest egg worm spider beetle butterfly bee ant frog turtle
snake lizard whale dolphin shark salmon trout crab lobster oyster squirrel rabbit hedgehog badger otter owl eagle crow
sparrow swan goose turkey donkey goat pig camel elephant tiger monkey parrot carrot potato onion tomato cabbage bean
pumpkin cherry plum peach lemon grape melon almond walnut pepper salt sugar honey vinegar oil flour dough oven stove
kettle pan lid napkin tray jug mug harvest orchard meadow pasture barn stable plough tractor hay wheat barley oat
""".split()

# Who acts: most subjects are among these.
PEOPLE = """
teacher student child boy girl man woman friend farmer doctor nurse guard guide cook judge driver pilot sailor soldier
king queen cat dog horse bird neighbour mother father sister brother daughter son uncle aunt singer actor painter writer
player coach winner leader thief mayor minister witness patient guest host carpenter gardener baker waiter engineer
scientist musician politician fisherman postman shepherd fox wolf lion bear mouse baby cousin crowd council team
""".split()

# Transitive: something is watched, built, found.
VERBS = """
see watch light book run find make take hold open close paint cook clean cut break move turn drive ride play show call
help answer guard guide plan visit water dry cool warm empty record report test study measure cost pay buy sell lose
keep leave bring catch teach write read draw sing hear feel want need like love hate fear trust doubt miss lift push
pull throw drop carry build repair paint wash fill mend fix hide seek steal follow lead meet greet thank invite please
surprise trouble worry wound cure treat attack defend win order offer demand supply trade raise cause change cover check
mark sign stamp pack load ship lock free welcome praise blame punish forgive remember forget recognise describe explain
discover invent examine observe collect divide join connect protect support reject accept receive deliver prepare finish
start stop stir bake fry boil plant harvest feed milk saddle tame train photograph film translate publish print copy
correct improve destroy damage polish sweep scrub sharpen bend fold tear sew weave knit wrap tie untie hang climb cross
enter avoid chase hunt trap fish paint nail hammer saw
""".split()

# Without an object.
INTRANSITIVES = """
sleep walk run swim laugh smile cry dream dance work rest wait stay arrive leave come go fall rise grow change move turn
stop start end begin talk speak sing play travel return appear vanish shine burn break sink float fly jump climb stand
sit lie die live hurry wander hesitate tremble sneeze cough whisper shout argue succeed fail matter happen
""".split()

# Followed by a clause.
CLAUSE_VERBS = "say think know hope believe hear feel see fear doubt promise report notice claim admit learn".split()
# Followed by `to` and a verb.
TO_VERBS = "want hope plan need promise try decide refuse learn start like love forget agree offer manage".split()

IRREGULAR = {  # past tense, participle
    "see": ("saw", "seen"), "run": ("ran", "run"), "find": ("found", "found"), "make": ("made", "made"),
    "take": ("took", "taken"), "hold": ("held", "held"), "cut": ("cut", "cut"), "break": ("broke", "broken"),
    "drive": ("drove", "driven"), "ride": ("rode", "ridden"), "show": ("showed", "shown"), "light": ("lit", "lit"),
    "cost": ("cost", "cost"), "pay": ("paid", "paid"), "buy": ("bought", "bought"), "sell": ("sold", "sold"),
    "lose": ("lost", "lost"), "keep": ("kept", "kept"), "leave": ("left", "left"), "bring": ("brought", "brought"),
    "catch": ("caught", "caught"), "teach": ("taught", "taught"), "write": ("wrote", "written"),
    "read": ("read", "read"), "draw": ("drew", "drawn"), "sing": ("sang", "sung"), "hear": ("heard", "heard"),
    "feel": ("felt", "felt"), "throw": ("threw", "thrown"), "build": ("built", "built"), "hide": ("hid", "hidden"),
    "seek": ("sought", "sought"), "steal": ("stole", "stolen"), "lead": ("led", "led"), "meet": ("met", "met"),
    "win": ("won", "won"), "forgive": ("forgave", "forgiven"), "forget": ("forgot", "forgotten"),
    "feed": ("fed", "fed"), "sweep": ("swept", "swept"), "bend": ("bent", "bent"), "tear": ("tore", "torn"),
    "sew": ("sewed", "sewn"), "weave": ("wove", "woven"), "hang": ("hung", "hung"), "sleep": ("slept", "slept"),
    "swim": ("swam", "swum"), "come": ("came", "come"), "go": ("went", "gone"), "fall": ("fell", "fallen"),
    "rise": ("rose", "risen"), "grow": ("grew", "grown"), "begin": ("began", "begun"), "speak": ("spoke", "spoken"),
    "shine": ("shone", "shone"), "sink": ("sank", "sunk"), "fly": ("flew", "flown"), "stand": ("stood", "stood"),
    "sit": ("sat", "sat"), "lie": ("lay", "lain"), "say": ("said", "said"), "think": ("thought", "thought"),
    "know": ("knew", "known"), "shake": ("shook", "shaken"),
}  # fmt: skip
IRREGULAR_PLURALS = {
    "man": "men", "woman": "women", "child": "children", "mouse": "mice", "tooth": "teeth", "foot": "feet",
    "goose": "geese", "leaf": "leaves", "wolf": "wolves", "knife": "knives", "thief": "thieves", "shelf": "shelves",
    "sheep": "sheep", "fish": "fish", "salmon": "salmon", "trout": "trout", "fisherman": "fishermen",
    "postman": "postmen", "fireman": "firemen", "policeman": "policemen", "potato": "potatoes",
    "tomato": "tomatoes",
}  # fmt: skip
# Their last letter is doubled: stopped, running.
DOUBLING = set(
    "ship run cut stop drop plan win hit sit swim begin forget trap wrap stir chat hug rub nod scrub knit".split()
)

ADJECTIVES = """
old light open close cold dry clean warm cool empty free fast hard early late long short new young small big great good
bad quick slow happy sad tired hungry angry quiet loud bright dark heavy soft sharp round square flat deep shallow high
low wide narrow thick thin strong weak rich poor cheap expensive famous unknown strange common rare simple difficult
easy safe dangerous careful careless useful useless beautiful ugly lovely friendly lonely clever foolish brave shy proud
humble honest wise gentle cruel kind polite rude lazy busy patient nervous curious serious generous jealous anxious
obvious various previous ancient modern recent local national foreign public private royal golden silver wooden broken
frozen hidden forgotten painted closed locked tired worried surprised pleased surprising boring exciting interesting
amazing charming green red blue yellow white black grey brown purple salty sweet sour bitter fresh stale raw ripe rotten
dusty rainy sunny windy snowy muddy rusty stony sandy hairy noisy shiny sleepy thirsty wealthy healthy guilty historic
electric plastic scientific economic political musical medical electrical natural central normal formal final fatal
capable reliable comfortable reasonable terrible possible invisible edible magnetic fantastic gigantic tiny enormous
""".split()

ADVERBS = """
again soon often never always then now here there late early fast hard well together away back home inside outside
yesterday today tomorrow sometimes perhaps maybe still already quickly slowly quietly loudly carefully suddenly happily
sadly angrily easily gently politely rarely usually finally recently clearly nearly secretly bravely honestly calmly
patiently nervously proudly softly firmly briefly eagerly
""".split()
DEGREES = "very quite too so rather almost really fairly".split()

PREPOSITIONS = "in on at with from to by near under over behind through before after for like without about of".split()
CONJUNCTIONS = "and but or".split()
SUBORDINATORS = "because when if while before after although until since as".split()
MODALS = "can will must may should could would might".split()
INTERJECTIONS = "oh well yes no please hello".split()
NUMBERS = "two three four five six seven ten twelve twenty 7 12 40 150 1950 hundred".split()
GIVEN_NAMES = """
Anna Tom Mary Jack Rose Will Mark Grace Lily Frank Victoria Florence Jordan Austin Chelsea Charlotte Henry Peter Clara
Edith Hugo Oscar Nora Ivy Arthur Walter Martha Alice Simon Daniel Rachel Julia Emma Oliver Felix Max Ruth Hannah
""".split()
CITIES = """
Paris London Florence Victoria Austin Charlotte Lincoln York Bath Reading Cork Nice Rome Vienna Lisbon Dublin Bergen
Geneva Milan Oslo Lyon Turin Ghent Porto
""".split()
# Surnames and villages are made of a beginning and an ending: there are always new ones.
NAME_BEGINNINGS = """
Ash Mill Stone Hart Black Green Brook Wood Thorn Oak Red Whit Marsh Hazel Elm Fern Kings West East North Wind Burn Cold
Fair Long Holm Lang Rock Swan Raven Fox
""".split()
SURNAME_ENDINGS = "man son er well ford ley ton smith wood".split()
VILLAGE_ENDINGS = "ford ton bury ham ley brook field mouth wick wood".split()
# `the Ashford Museum`, `the Lake Company`.
INSTITUTIONS = "Museum Library Company Bank Theatre School Hospital Council Orchestra Railway Society".split()
