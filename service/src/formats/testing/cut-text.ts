/** For tests: a text in pieces of these lengths, which repeat. At least one of them is not 0. */
export function cutText(text: string, lengths: readonly number[]): string[] {
  const pieces: string[] = []
  for (let at = 0, index = 0; at < text.length; index++) {
    const length = lengths[index % lengths.length]!
    pieces.push(text.slice(at, at + length))
    at += length
  }
  return pieces
}
