import type { Protocol } from './formats/protocols.ts'
import type { Failure, Frame } from './frame.ts'
import type { Script } from './script.ts'

export type Step = { write: string; isPiece: boolean } | { waitMs: number } | { destroy: true }

/** Plans what is written and when, including faults; does no I/O. */
export function planStream(
  frames: readonly Frame[],
  script: Script,
  protocol: Protocol,
  failure: Failure,
): Step[] {
  const shown = script.noDone ? frames.filter(({ kind }) => kind !== 'end') : frames
  const total = shown.filter(({ kind }) => kind === 'piece').length
  const steps: Step[] = []
  const sent: Frame[] = []
  let pieces = 0
  const add = (frame: Frame) => {
    sent.push(frame)
    steps.push({ write: frame.text, isPiece: frame.kind === 'piece' })
  }
  /** Adds the faults that are due after the current piece; true if one of them ends the stream. */
  const failsHere = () => {
    const isHere = (after?: { pieces: number }) =>
      after !== undefined && Math.min(after.pieces, total) === pieces
    const { stallAfter, malformedAfter, errorAfter, closeAfter } = script
    if (stallAfter && isHere(stallAfter)) steps.push({ waitMs: stallAfter.ms })
    if (isHere(malformedAfter)) add({ text: protocol.malformedFrame, kind: 'frame' })
    if (isHere(errorAfter)) add(protocol.errorFrame(failure, sent))
    else if (isHere(closeAfter)) steps.push({ destroy: true })
    return isHere(errorAfter) || isHere(closeAfter)
  }
  for (const frame of shown) {
    const isPiece = frame.kind === 'piece'
    const isFirst = pieces === 0 && (isPiece || (total === 0 && frame === shown.at(-1)))
    if (isFirst && failsHere()) return finish(steps, script)
    if (isPiece && pieces > 0 && script.paceMs && !script.coalesce) {
      steps.push({ waitMs: script.paceMs })
    }
    add(frame)
    if (isPiece) pieces++
    if (isPiece && failsHere()) return finish(steps, script)
  }
  return finish(steps, script)
}

function finish(steps: Step[], { noFinalBlankLine, crlf, coalesce, splitBytes }: Script): Step[] {
  const last = steps.at(-1)
  if (noFinalBlankLine && last && 'write' in last) last.write = last.write.slice(0, -1)
  if (crlf) {
    for (const step of steps) if ('write' in step) step.write = step.write.replaceAll('\n', '\r\n')
  }
  return coalesce || splitBytes !== undefined ? joinWrites(steps) : steps
}

/** Joins consecutive writes that have no wait between them. */
function joinWrites(steps: readonly Step[]): Step[] {
  const joined: Step[] = []
  let texts: string[] = []
  const flush = () => {
    if (texts.length > 0) joined.push({ write: texts.join(''), isPiece: true })
    texts = []
  }
  for (const step of steps) {
    if ('write' in step) texts.push(step.write)
    else {
      flush()
      joined.push(step)
    }
  }
  flush()
  return joined
}
