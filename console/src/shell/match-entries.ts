const shownMax = 30

type Named = { name: string; also?: string }

/** What has all words of the text in its name, names that begin with the text first. */
export function matchEntries<Entry extends Named>(
  entries: readonly Entry[],
  text: string,
): readonly Entry[] {
  const wanted = text.trim().toLowerCase()
  const words = wanted.split(/\s+/)
  const nameOf = ({ name, also = '' }: Entry) => `${name} ${also}`.toLowerCase()
  const found = entries.filter((entry) => words.every((word) => nameOf(entry).includes(word)))
  const begins = (entry: Entry) => (nameOf(entry).startsWith(wanted) ? 0 : 1)
  return found.toSorted((one, other) => begins(one) - begins(other)).slice(0, shownMax)
}
