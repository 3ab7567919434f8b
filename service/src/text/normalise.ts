import { OffsetMap } from './offset-map.ts'
import { isHighSurrogate, isLowSurrogate } from './surrogates.ts'

/**
 * Normalising, as a function of the whole text: invisible characters are removed, the rest is put into the
 * Unicode form NFKC, and every run of white space becomes one space. A text that arrives in pieces is cut into
 * clusters: a character and the marks that may combine with it. NFKC never looks across the start of a cluster, so
 * a cluster can be normalised alone as soon as the next one has started.
 */

/**
 * Zero-width characters, bidirectional controls, variation selectors, tags, fillers, annotation marks, the blank Braille
 * pattern, and control characters that are not white space.
 */
const removedCharacter =
  /[\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\p{Cc}\u2800\ufff9-\ufffb]/u
const whiteSpace = /\p{White_Space}/u
/**
 * What may combine with the character before it, or is replaced by something that may: marks, vowels and final
 * consonants of Hangul in all their forms, half-width Japanese sound marks, the Thai and Lao vowel AM, and the vowel
 * signs of Kirat Rai, which are letters.
 */
const joiningCharacter =
  /[\p{M}\u0e33\u0eb3\u1160-\u11ff\u3131-\u318e\ud7b0-\ud7ff\uff9e\uff9f\uffa0-\uffdc\u{16d63}\u{16d67}\u{16d68}]/u

/** A cluster has at most this many characters after its first one; otherwise it could grow without limit. */
const mostJoined = 30

/** Stays as it is unless something joins it. */
const plain = 1
/** One unit of a surrogate pair, or a lone one. */
const surrogate = 2
const space = 3
const removed = 4
const joining = 5
/** NFKC replaces it. */
const replaced = 6

/** The kinds of the characters of one unit, found at first use. */
const knownKinds = new Uint8Array(0x10000)

function findKind(character: string): number {
  // Before the removed ones: line breaks and tabs are control characters too.
  if (whiteSpace.test(character)) return space
  if (removedCharacter.test(character)) return removed
  if (joiningCharacter.test(character)) return joining
  return character.normalize('NFKC') === character ? plain : replaced
}

function kindOfUnit(unit: number): number {
  const known = knownKinds[unit] ?? 0
  if (known !== 0) return known
  const kind = (unit & 0xf800) === 0xd800 ? surrogate : findKind(String.fromCharCode(unit))
  knownKinds[unit] = kind
  return kind
}

/** Normalises a text as it grows; the result does not depend on how the text was cut into pieces. */
export class Normaliser {
  #map = new OffsetMap()
  /** The cluster that may still grow, without its removed characters. */
  #cluster = ''
  #clusterStart = 0
  #joined = 0
  #isClusterPlain = true
  /** The first half of a pair whose second half may be in the next piece. */
  #halfPair = ''
  /** Units of the original that have been looked at. */
  #seen = 0
  #length = 0
  #lastUnit = 0
  #output = ''

  /** A copy that goes its own way from here. */
  fork(): Normaliser {
    const fork = new Normaliser()
    fork.#map = this.#map.fork()
    fork.#cluster = this.#cluster
    fork.#clusterStart = this.#clusterStart
    fork.#joined = this.#joined
    fork.#isClusterPlain = this.#isClusterPlain
    fork.#halfPair = this.#halfPair
    fork.#seen = this.#seen
    fork.#length = this.#length
    fork.#lastUnit = this.#lastUnit
    return fork
  }

  /** Whether both make the same of whatever comes. */
  agreesWith(other: Normaliser): boolean {
    return (
      this.#cluster === other.#cluster &&
      this.#joined === other.#joined &&
      this.#isClusterPlain === other.#isClusterPlain &&
      this.#halfPair === other.#halfPair &&
      this.#lastUnit === other.#lastUnit
    )
  }

  /** Normalised characters returned so far. */
  get length(): number {
    return this.#length
  }

  /** With the cluster that may still grow, which may become shorter. */
  get lengthSoFar(): number {
    return this.#length + this.#cluster.length
  }

  /** Adds a piece of the original; returns the normalised characters that are now final. */
  push(piece: string): string {
    const text = this.#halfPair + piece
    this.#halfPair = ''
    let at = 0
    while (at < text.length) {
      const unit = text.charCodeAt(at)
      const kind = kindOfUnit(unit)
      if (kind === plain) at = this.#addPlainRun(text, at)
      else if (kind === surrogate && at + 1 === text.length && isHighSurrogate(unit)) {
        this.#halfPair = text.slice(at)
        at++
      } else if (kind === surrogate) at += this.#addSurrogate(text, at)
      else {
        this.#add(text.charAt(at), kind)
        at++
      }
    }
    return this.#takeOutput()
  }

  /** The text is over; returns its last characters. */
  end(): string {
    if (this.#halfPair !== '') this.#add(this.#halfPair, plain)
    this.#halfPair = ''
    this.#endCluster()
    return this.#takeOutput()
  }

  /**
   * Where in the original the normalised character at `index` starts. All characters of a cluster that was changed
   * start where the cluster does. For `index === length`: how much of the original is covered by what was returned.
   */
  originalOffset(index: number): number {
    if (index < this.#length) return this.#map.at(index)
    return this.#cluster === '' ? this.#seen : this.#clusterStart
  }

  /** The map before `index` is not needed any more. */
  forget(index: number): void {
    this.#map.forget(index)
  }

  /** Most text: characters that stay as they are, with single spaces between them. Returns where the run ends. */
  #addPlainRun(text: string, start: number): number {
    let end = start + 1
    for (; end < text.length; end++) {
      const unit = text.charCodeAt(end)
      const isSingleSpace = unit === 0x20 && text.charCodeAt(end - 1) !== 0x20
      if (!isSingleSpace && kindOfUnit(unit) !== plain) break
    }
    this.#endCluster()
    const hasSpaceLast = text.charCodeAt(end - 1) === 0x20
    const final = hasSpaceLast ? end : end - 1
    if (final > start) this.#emitAsIs(text.slice(start, final))
    if (!hasSpaceLast) this.#startCluster(text.charAt(final), true)
    return end
  }

  /** Returns how many units were added: two for a pair, one for a lone surrogate. */
  #addSurrogate(text: string, at: number): number {
    const unit = text.charCodeAt(at)
    if (isHighSurrogate(unit) && isLowSurrogate(text.charCodeAt(at + 1))) {
      const character = text.slice(at, at + 2)
      this.#add(character, findKind(character))
      return 2
    }
    const before =
      this.#cluster === '' ? this.#lastUnit : this.#cluster.charCodeAt(this.#cluster.length - 1)
    // Removing what stood between two lone halves must not make a character of them that was never normalised.
    const wouldPair = isLowSurrogate(unit) && isHighSurrogate(before)
    this.#add(wouldPair ? '\ufffd' : text.charAt(at), plain)
    return 1
  }

  #add(character: string, kind: number): void {
    if (kind === removed) this.#seen += character.length
    else if (kind === space) this.#addSpace()
    else if (kind === joining && this.#cluster !== '' && this.#joined < mostJoined) {
      this.#cluster += character
      this.#joined++
      this.#isClusterPlain = false
      this.#seen += character.length
    } else {
      this.#endCluster()
      this.#startCluster(character, kind === plain)
    }
  }

  /** Nothing combines with a space, so it is final at once. All white space has one unit. */
  #addSpace(): void {
    this.#endCluster()
    if (this.#lastUnit === 0x20) this.#seen++
    else this.#emitAsIs(' ')
  }

  #startCluster(character: string, isPlain: boolean): void {
    this.#cluster = character
    this.#clusterStart = this.#seen
    this.#joined = 0
    this.#isClusterPlain = isPlain
    this.#seen += character.length
  }

  /** Puts out characters that stand for as many units of the original, which follow what has been seen. */
  #emitAsIs(text: string): void {
    this.#map.addRun(this.#length + this.#output.length, this.#seen, true)
    this.#seen += text.length
    this.#append(text)
  }

  #endCluster(): void {
    if (this.#cluster === '') return
    const text = this.#isClusterPlain ? this.#cluster : this.#normalisedCluster()
    const isUnchanged = text === this.#cluster
    this.#cluster = ''
    if (text === '') return
    this.#map.addRun(this.#length + this.#output.length, this.#clusterStart, isUnchanged)
    this.#append(text)
  }

  /** NFKC makes a mark that stands alone of a space and the mark, but never two spaces in a row. */
  #normalisedCluster(): string {
    const text = this.#cluster.normalize('NFKC')
    return text.startsWith(' ') && this.#lastUnit === 0x20 ? text.slice(1) : text
  }

  #append(text: string): void {
    this.#output += text
    this.#lastUnit = text.charCodeAt(text.length - 1)
  }

  #takeOutput(): string {
    const output = this.#output
    this.#length += output.length
    this.#output = ''
    return output
  }
}

/** Normalises a complete text. */
export function normalise(text: string): { text: string; originalOffset(index: number): number } {
  const normaliser = new Normaliser()
  const normalised = normaliser.push(text) + normaliser.end()
  return { text: normalised, originalOffset: (index) => normaliser.originalOffset(index) }
}
