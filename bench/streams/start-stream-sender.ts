import { setTimeout as sleep } from 'node:timers/promises'

import { headerSets } from '../header-sets.ts'
import { startChild } from '../targets/child.ts'
import type { Target } from '../targets/target.ts'
import type { Releases } from './releases.ts'
import type { Job, Report } from './stream-sender.ts'

type Streams = Pick<Job, 'streams' | 'openingMs'> & { script: object; tokensMax: number }

const patienceMs = 60_000

/** A process that holds streams open. `begin` returns when all have sent their first frame. */
export async function startStreamSender() {
  const { child, stop } = await startChild(new URL('stream-sender.ts', import.meta.url))
  const ask = (question: 'report' | 'releases') =>
    new Promise((resolve) => {
      child.once('message', resolve)
      child.send(question)
    })
  const report = async () => {
    const read = (await ask('report')) as Report
    if (read.problem !== undefined) throw new Error(`A stream failed: ${read.problem}.`)
    return read
  }
  const until = async (isReached: (report: Report) => boolean, withinMs: number) => {
    for (const deadline = Date.now() + withinMs; Date.now() < deadline;) {
      if (isReached(await report())) return
      await sleep(100)
    }
    throw new Error(`The streams did not get there in ${withinMs / 1000} seconds.`)
  }
  function open(target: Target, { script, tokensMax, ...how }: Streams) {
    const body = bodyWith(script, tokensMax)
    child.send({ url: target.url, headerSets: headerSets(target), body, ...how } satisfies Job)
  }
  return {
    stop,
    report,
    /** How the frames of all streams since `begin` have arrived. */
    releases: async () => (await ask('releases')) as Releases,
    async begin(target: Target, streams: Streams) {
      open(target, streams)
      await until(({ started }) => started === streams.streams, streams.openingMs + patienceMs)
    },
    /** The same without a wait, for streams of which nothing arrives. */
    open,
    untilEnded: (streams: number) => until(({ ended }) => ended === streams, patienceMs),
    end: () => void child.send('end'),
  }
}
export type StreamSender = Awaited<ReturnType<typeof startStreamSender>>

const bodyWith = (script: object, tokensMax: number) =>
  JSON.stringify({
    model: 'gpt-scripted',
    messages: [{ role: 'user', content: `Go on.\n#script ${JSON.stringify(script)}` }],
    max_completion_tokens: tokensMax,
    stream: true,
    stream_options: { include_usage: true },
  })
