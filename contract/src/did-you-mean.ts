/** The known word that a mistyped one most likely stands for; undefined when none is close. */
export function didYouMean(word: string, known: readonly string[]): string | undefined {
  const typed = normalize(word)
  let closest: { name: string; distance: number } | undefined
  for (const name of known) {
    const distance = editDistance(typed, normalize(name))
    const isClose = distance <= Math.max(1, Math.floor(Math.max(typed.length, name.length) / 3))
    if (isClose && distance < (closest?.distance ?? Infinity)) closest = { name, distance }
  }
  return closest?.name
}

/** Case and the choice between `-` and `_` are no differences worth counting. */
const normalize = (word: string) => word.toLowerCase().replaceAll('_', '-').slice(0, 100)

/** Insertions, deletions, replacements and swaps of neighbours that turn one word into the other. */
function editDistance(from: string, to: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1]
      const isSwap = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      current[column] = Math.min(
        at(last, column) + 1,
        at(current, column - 1) + 1,
        at(last, column - 1) + (isSame ? 0 : 1),
        isSwap ? at(beforeLast, column - 2) + 1 : Infinity,
      )
    }
    beforeLast = last
    last = current
  }
  return at(last, to.length)
}

const at = (row: readonly number[], column: number) => row[column] ?? Infinity
