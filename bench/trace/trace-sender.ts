import type { ChildProcess } from 'node:child_process'

import { type Mode, modes } from '../chat-call.ts'
import type { Sender } from '../latency/fixed-rate.ts'
import type { Gatehouse } from '../targets/gatehouse.ts'
import type { Marks } from './marks.ts'
import { joinMarks, traceTableOf } from './trace-table.ts'

/** Variables of a Gatehouse that can be traced. Until it is told to, it marks nothing. */
export const tracedEnvironment = {
  NODE_OPTIONS: `--import=${new URL('hook.ts', import.meta.url).href}`,
}

/** A sender that also collects what the steps of Gatehouse's calls take, window by window. */
export function traceSender(sender: Sender, gatehouse: Gatehouse) {
  const windows: Record<Mode, Marks[]> = { plain: [], stream: [] }
  const [child] = gatehouse.children
  if (!child) throw new Error('There is no process to trace.')
  const traced: Sender = {
    ...sender,
    async send(target, rate) {
      if (target.url !== gatehouse.url) return sender.send(target, rate)
      child.send('start trace')
      const times = await sender.send(target, rate)
      windows[rate.mode].push(await stopTrace(child))
      return times
    },
  }
  return {
    sender: traced,
    print() {
      for (const mode of modes) {
        // The first window warms up.
        const marks = joinMarks(windows[mode].slice(1))
        if (!marks['whole call']) throw new Error('No step was traced: has the service moved them?')
        console.log(`\n${traceTableOf(`steps, ${mode}`, marks)}`)
      }
    },
  }
}

const stopTrace = (child: ChildProcess) =>
  new Promise<Marks>((resolve) => {
    child.once('message', (marks) => resolve(marks as Marks))
    child.send('stop trace')
  })
