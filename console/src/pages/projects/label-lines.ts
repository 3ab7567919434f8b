type Labels = Readonly<Record<string, string>>

/** Labels as lines that a person can edit. */
export const writeLabels = (labels: Labels): string =>
  Object.entries(labels)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n')

/** The labels of such lines. A line without a colon is a name without a value, which the gateway refuses in words. */
export function readLabels(text: string): Record<string, string> {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
  return Object.fromEntries(
    lines.map((line) => {
      const [name = '', ...value] = line.split(':')
      return [name.trim(), value.join(':').trim()]
    }),
  )
}
