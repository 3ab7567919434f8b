/** Words for people under eighteen. Words that are as common for adults, such as "baby" or "girl", are left out. */
const minorTerms: ReadonlySet<string> = new Set([
  'adolescent',
  'adolescents',
  'boyhood',
  'child',
  'childhood',
  'children',
  "children's",
  "child's",
  'girlhood',
  'infant',
  'infants',
  'juvenile',
  'juveniles',
  'kid',
  'kids',
  'kindergarten',
  'minor',
  'minors',
  'preteen',
  'preteens',
  'pubescent',
  'schoolboy',
  'schoolboys',
  'schoolchild',
  'schoolchildren',
  'schoolgirl',
  'schoolgirls',
  'teen',
  'teenage',
  'teenager',
  'teenagers',
  'teens',
  'toddler',
  'toddlers',
  'tween',
  'tweens',
  'underage',
  'underaged',
  'youngster',
  'youngsters',
])
const longest = Math.max(...Array.from(minorTerms, (term) => term.length))

const ageMax = 17
/** What follows an age: "12 years old", "12-year-old", "12 yo", "12yo". */
const afterAge: ReadonlySet<string> = new Set(['y', 'year', 'years', 'yo', 'yr', 'yrs'])
/** What comes before an age: "aged 12", "age 12". */
const beforeAge: ReadonlySet<string> = new Set(['age', 'aged', 'ages'])
const numberWords: ReadonlySet<string> = new Set(
  (
    'one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen ' +
    'sixteen seventeen'
  ).split(' '),
)
const ageInOneWord = /^(\d{1,2})(?:y|yo|yr|yrs)$/

/** Whether a text in lower case names a person under eighteen, by a word or an age. */
export function hasMinorTerm(text: string, bounds: readonly number[]): boolean {
  let previous = ''
  for (let index = 0; index < bounds.length; index += 2) {
    const start = bounds[index] ?? 0
    const end = bounds[index + 1] ?? 0
    const word = end - start <= longest ? text.slice(start, end) : ''
    if (minorTerms.has(word) || isMinorAge(previous, word)) return true
    previous = word
  }
  return false
}

function isMinorAge(previous: string, word: string): boolean {
  if (afterAge.has(word)) return isAge(previous)
  if (beforeAge.has(previous)) return isAge(word)
  const [, digits] = word.length <= 5 ? (ageInOneWord.exec(word) ?? []) : []
  return digits !== undefined && isAge(digits)
}

const isAge = (word: string) =>
  numberWords.has(word) || (/^\d{1,2}$/.test(word) && Number(word) <= ageMax)
