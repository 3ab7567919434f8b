import type { Segment } from '#moderation/scorer.ts'

/** A size that every scorer accepts, in any language. */
const pieceMaxLength = 8000
/** Pieces overlap by this much, so that a passage across a cut is whole in one of them. */
const overlap = 200
/** OpenAI accepts images of 20 MB. In a data URL they are in base64, after their type. */
const imageMaxBytes = 20_000_000
const imageMaxLength = Math.ceil(imageMaxBytes / 3) * 4 + 256

/** A part of a segment, small enough for one call. `index` is the segment's. */
export type SegmentPiece = { readonly index: number; readonly segment: Segment }

/** Splits segments into pieces without leaving out text. An image goes with the first piece, if it is to be scored. */
export function splitSegments(segments: readonly Segment[], readsImages: boolean): SegmentPiece[] {
  return segments.flatMap(({ role, text, imageUrl }, index) => {
    const image = readsImages && isReadable(imageUrl) ? { imageUrl } : {}
    // An unpaired surrogate from a caller makes some servers fail.
    const texts =
      text === '' ? (image.imageUrl === undefined ? [] : ['']) : splitText(text.toWellFormed())
    return texts.map((piece, number) => ({
      index,
      segment: { role, text: piece, ...(number === 0 && image) },
    }))
  })
}

export const isReadable = (imageUrl: string | undefined): imageUrl is string =>
  imageUrl !== undefined && imageUrl.length <= imageMaxLength

function splitText(text: string): string[] {
  const pieces: string[] = []
  let start = 0
  while (text.length - start > pieceMaxLength) {
    const end = avoidHalfCharacter(text, start + pieceMaxLength)
    pieces.push(text.slice(start, end))
    start = avoidHalfCharacter(text, end - overlap)
  }
  return [...pieces, text.slice(start)]
}

/** Moves the cut back by one if it would divide a surrogate pair. */
function avoidHalfCharacter(text: string, position: number): number {
  const code = text.charCodeAt(position - 1)
  return code >= 0xd800 && code <= 0xdbff ? position - 1 : position
}

/** Groups of at most `groupMax` pieces. A piece with an image is a group of its own. */
export function groupPieces(pieces: readonly SegmentPiece[], groupMax: number): SegmentPiece[][] {
  const groups: SegmentPiece[][] = []
  let open: SegmentPiece[] | undefined
  for (const piece of pieces) {
    if (piece.segment.imageUrl !== undefined) {
      groups.push([piece])
    } else if (open && open.length < groupMax) {
      open.push(piece)
    } else {
      open = [piece]
      groups.push(open)
    }
  }
  return groups
}
