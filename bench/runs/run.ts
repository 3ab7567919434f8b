import type { Costs } from '@gatehouse/tools/scale/costs'

import type { Mode } from '../chat-call.ts'
import type { CpuPlan } from '../cpu/measure-cpu.ts'
import type { OwnServers } from '../servers/own-servers.ts'
import type { Gatehouse } from '../targets/gatehouse.ts'
import type { Target } from '../targets/target.ts'

/** `mayRepeat`: a section that was disturbed is measured once more. */
export type Plan = CpuPlan & { rateWindows: number; rounds: number; mayRepeat: boolean }

/** What all sections share. */
export type Run = {
  plan: Plan
  upstream: Target
  bare: Target
  gatehouse: Gatehouse
  servers: OwnServers
  /** Where programs stay installed between runs. */
  scratch: string
  /** Of this run only. */
  folder: string
  /** Of one section: what it starts ends with it. */
  cleanup: AsyncDisposableStack
  known: Known
  /** Whether Gatehouse was started so that the steps of its calls can be traced. */
  isTraced: boolean
}

/** What sections leave for those after them. */
type Known = {
  capacity?: Record<Mode, number>
  /** What the scale of a deployment is computed from. */
  costs: Partial<Costs>
}
