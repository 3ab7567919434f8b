/** The categories of OpenAI's moderation endpoint. */
const categories = [
  'harassment',
  'harassment/threatening',
  'hate',
  'hate/threatening',
  'illicit',
  'illicit/violent',
  'self-harm',
  'self-harm/intent',
  'self-harm/instructions',
  'sexual',
  'sexual/minors',
  'violence',
  'violence/graphic',
]

/**
 * The scores that a text gives itself, as in `[[cat:hate=0.9]]`, and 0 for every other category. White space inside of a mark
 * does not count, as it would not for a model that reads words.
 */
export function scoresMarkedIn(text: string): Record<string, number> {
  const marks = text.matchAll(/\[\s*\[\s*cat:([a-z/\s-]+)=([\d.\s]+)\]\s*\]/g)
  const given = new Map(Array.from(marks, ([, name, score]) => [tight(name), Number(tight(score))]))
  return Object.fromEntries(categories.map((name) => [name, given.get(name) ?? 0]))
}

const tight = (text = '') => text.replaceAll(/\s+/g, '')
