/** Frames that arrive within this time of each other have left together; paced frames are 20 ms apart. */
const togetherMs = 5

/** How the frames of many streams have arrived. Times are milliseconds. */
export type Releases = {
  frames: number
  releases: number
  /** The most frames that one stream got at once. */
  mostFrames: number
  /** The longest time that one stream was silent between two frames. */
  longestGapMs: number
  /** From sending the request of a stream to its first text, of each stream. */
  firstTextMs: number[]
}

export const noReleases = (): Releases => ({
  frames: 0,
  releases: 0,
  mostFrames: 0,
  longestGapMs: 0,
  firstTextMs: [],
})

/** Notes in `all` how the frames of one stream arrive, which was asked for at `sentAt`. */
export function createReleaseCounter(all: Releases, sentAt: number) {
  let [lastAt, inRelease, hasText] = [-Infinity, 0, false]
  /** `frames` may be 0: of a frame that is cut in two, only the second part completes it. */
  return (at: number, { frames, isText }: { frames: number; isText: boolean }) => {
    if (isText && !hasText) {
      hasText = true
      all.firstTextMs.push(at - sentAt)
    }
    if (frames === 0) return
    if (at - lastAt > togetherMs) {
      if (inRelease > 0) all.longestGapMs = Math.max(all.longestGapMs, at - lastAt)
      all.releases++
      inRelease = 0
    }
    inRelease += frames
    lastAt = at
    all.frames += frames
    all.mostFrames = Math.max(all.mostFrames, inRelease)
  }
}

const frameEnd = '\n\n'
const text = /"content":"[^"]/

/** What of a stream of chat completions is in a chunk of it. */
export function readChunk(chunk: string): { frames: number; isText: boolean } {
  let frames = 0
  for (let at = chunk.indexOf(frameEnd); at >= 0; at = chunk.indexOf(frameEnd, at + 2)) frames++
  return { frames, isText: text.test(chunk) }
}
