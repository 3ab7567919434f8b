import type { CategoryScores } from '#moderation/categories.ts'
import { countedOnly, type Scorer, type ScoringCall, type Segment } from '#moderation/scorer.ts'

/** Up to this many texts, or texts that fit into this many questions, are scored one by one, which is more exact. */
const textsMax = 32
const questionsMax = 8
const shortMaxLength = 500
/** A quarter of what scorers read at a time, so that a short text is not drowned out by the texts around it. */
const joinedMaxLength = 2000
const separator = '\n\n'
/** From this score on, each of the joined texts is scored alone, and only that score counts. */
const suspectBasisPoints = 1000

/**
 * A request may have thousands of short texts, and each would be a question. So they are scored together first. Nearly always
 * nothing is found; otherwise each text is scored alone, so that we know which of them it is. `groupMax`: how many texts fit
 * into one question.
 */
export function joinShortTexts(scorer: Scorer, groupMax: number): Scorer {
  if (!scorer.asksOthers) return scorer
  const aloneMax = Math.max(textsMax, questionsMax * groupMax)
  return {
    ...scorer,
    score: (segments, call) =>
      segments.length <= aloneMax
        ? scorer.score(segments, call)
        : scoreTogether(scorer, segments, call),
  }
}

/** Texts that are scored as one: the indexes of their segments, and the joined text. */
type Joined = { readonly places: number[]; segment: Segment }

async function scoreTogether(
  scorer: Scorer,
  segments: readonly Segment[],
  call: ScoringCall,
): Promise<readonly CategoryScores[]> {
  const joined = join(segments)
  const found = await scorer.score(
    joined.map(({ segment }) => segment),
    {
      ...call,
      onScored(index, scores) {
        // The score of joined texts is not cached for each of them, because a text alone may score higher.
        const [place, ...others] = joined[index]?.places ?? []
        if (place !== undefined && others.length === 0) call.onScored?.(place, scores)
      },
    },
  )
  const results: CategoryScores[] = segments.map(() => ({}))
  const suspects: number[] = []
  for (const [index, { places }] of joined.entries()) {
    const scores = found[index] ?? {}
    if (!isSettled(places, scores)) suspects.push(...places)
    for (const place of places) results[place] = scores
  }
  const alone = await scoreAlone(scorer, { segments, suspects }, call)
  for (const [index, place] of suspects.entries()) results[place] = alone[index] ?? {}
  return results
}

/** These questions follow from the first replies, so they are counted and never refused. */
function scoreAlone(
  scorer: Scorer,
  { segments, suspects }: { segments: readonly Segment[]; suspects: readonly number[] },
  { questions, onScored, ...call }: ScoringCall,
): Promise<readonly CategoryScores[]> | readonly CategoryScores[] {
  if (suspects.length === 0) return []
  return scorer.score(
    suspects.flatMap((place) => segments[place] ?? []),
    {
      ...call,
      questions: questions && countedOnly(questions),
      onScored: (index, scores) => onScored?.(suspects[index] ?? -1, scores),
    },
  )
}

const isSettled = (places: readonly number[], scores: CategoryScores): boolean =>
  places.length === 1 || Object.values(scores).every((score) => score < suspectBasisPoints)

const isShort = ({ text, imageUrl }: Segment) =>
  imageUrl === undefined && text !== '' && text.length <= shortMaxLength

/** Texts of one role are joined in their order. */
function join(segments: readonly Segment[]): Joined[] {
  const all: Joined[] = []
  const open = new Map<Segment['role'], Joined>()
  for (const [place, { windows: _, ...segment }] of segments.entries()) {
    const last = open.get(segment.role)
    const text = last && `${last.segment.text}${separator}${segment.text}`
    if (last && text !== undefined && isShort(segment) && text.length <= joinedMaxLength) {
      last.places.push(place)
      last.segment = { ...segment, text }
      continue
    }
    const alone = { places: [place], segment }
    all.push(alone)
    if (isShort(segment)) open.set(segment.role, alone)
  }
  return all
}
