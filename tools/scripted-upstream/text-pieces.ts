const words = 'the sun rose over a quiet hill and two birds sang to it all day long'.split(' ')
const charactersInToken = 4

/** The words of a text, each with the white space before it; joined, they are the text again. */
export function wordsOf(text: string): string[] {
  return text.match(/\s*\S+|\s+$/g) ?? []
}

export function piecesOf(text: string, pieceTokens: number): string[] {
  const all = wordsOf(text)
  if (pieceTokens === 1) return all
  const pieces: string[] = []
  for (let at = 0; at < all.length; at += pieceTokens) {
    pieces.push(all.slice(at, at + pieceTokens).join(''))
  }
  return pieces
}

export function generateWords(count: number): string {
  const chosen: string[] = []
  for (let index = 0; index < count; index++) chosen.push(words[index % words.length] ?? '')
  return chosen.join(' ')
}

/** Cuts a text into this many parts, or one per character if it has fewer, without splitting a character. */
export function cutEvenly(text: string, parts: number): string[] {
  const characters = Array.from(text)
  const count = Math.min(parts, characters.length)
  return Array.from({ length: count }, (_, index) => {
    const start = Math.floor((index * characters.length) / count)
    const end = Math.floor(((index + 1) * characters.length) / count)
    return characters.slice(start, end).join('')
  })
}

/** Counts the tokens of a prompt; a token of this upstream has four characters. */
export function countTokens(characters: number): number {
  return Math.max(1, Math.ceil(characters / charactersInToken))
}

export function tokenPieces(text: string): string[] {
  const pieces: string[] = []
  for (let at = 0; at < text.length; at += charactersInToken) {
    pieces.push(text.slice(at, at + charactersInToken))
  }
  return pieces
}
