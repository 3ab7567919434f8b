/** Something that ends, or happens, at a given time. */
export type Timed = { onDue(): void }

type Options = { nowMs: () => number; tickMs: number; slots: number }

/**
 * Deadlines that may be a little late, never early. A call has several of them, nearly all are stopped before they are
 * due, and some move with every piece of an answer: to start, move and stop one here is a few assignments, and one
 * timer of the runtime serves all. A deadline further away than the wheel is large stays for more than one turn of it.
 */
export class TimerWheel {
  readonly #options: Options
  readonly #slots: (WheelDeadline | undefined)[]
  #tick: number
  #count = 0
  #timer: NodeJS.Timeout | undefined

  constructor(options: Partial<Options> = {}) {
    this.#options = { nowMs: () => performance.now(), tickMs: 50, slots: 512, ...options }
    this.#slots = Array.from({ length: this.#options.slots })
    this.#tick = this.#currentTick()
  }

  start(ms: number, target: Timed): WheelDeadline {
    const deadline = new WheelDeadline(this, target)
    this.move(deadline, ms)
    return deadline
  }

  /** How many deadlines have neither passed nor been stopped. */
  get size(): number {
    return this.#count
  }

  /** Called by `Deadline`: it is due in `ms` from now. */
  move(deadline: WheelDeadline, ms: number) {
    const { nowMs, tickMs } = this.#options
    if (!this.#timer) this.#startTicking()
    const dueTick = Math.max(Math.ceil((nowMs() + ms) / tickMs), this.#tick + 1)
    deadline.isDue = false
    if (deadline.slot !== -1) {
      deadline.dueTick = dueTick
      // A later one is put into its own slot when the wheel finds it in the old one.
      if (dueTick >= deadline.visitTick) return
      this.remove(deadline)
    }
    deadline.dueTick = dueTick
    this.#insert(deadline)
  }

  #startTicking() {
    this.#tick = this.#currentTick()
    this.#timer = setInterval(() => this.advance(), this.#options.tickMs).unref()
  }

  #insert(deadline: WheelDeadline) {
    const { slots } = this.#options
    const slot = deadline.dueTick % slots
    const next = this.#slots[slot]
    deadline.visitTick = deadline.dueTick
    deadline.slot = slot
    deadline.next = next
    deadline.previous = undefined
    if (next) next.previous = deadline
    this.#slots[slot] = deadline
    this.#count++
  }

  /** Called by `Deadline`. */
  remove(deadline: WheelDeadline) {
    const { slot, previous, next } = deadline
    deadline.isDue = false
    if (slot === -1) return
    if (previous) previous.next = next
    else this.#slots[slot] = next
    if (next) next.previous = previous
    deadline.slot = -1
    deadline.previous = undefined
    deadline.next = undefined
    this.#count--
  }

  /** Calls what is due by now, the earliest first. After a long break every slot is visited once. */
  advance() {
    const now = this.#currentTick()
    const due: WheelDeadline[] = []
    const first = Math.max(this.#tick + 1, now - this.#options.slots + 1)
    for (let tick = first; tick <= now; tick++) this.#visit(tick, now, due)
    this.#tick = now
    due.sort((one, other) => one.dueTick - other.dueTick)
    for (const deadline of due) deadline.fire()
    if (this.#count > 0 || !this.#timer) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #visit(tick: number, now: number, due: WheelDeadline[]) {
    let next = this.#slots[tick % this.#options.slots]
    while (next) {
      const deadline = next
      next = deadline.next
      const isDue = deadline.dueTick <= now
      if (!isDue && deadline.dueTick === deadline.visitTick) continue // in a later turn of the wheel
      this.remove(deadline)
      deadline.isDue = isDue
      if (isDue) due.push(deadline)
      else this.#insert(deadline)
    }
  }

  #currentTick() {
    return Math.floor(this.#options.nowMs() / this.#options.tickMs)
  }
}

/** One deadline in a wheel. It can be moved and stopped at any time, also after it has passed. */
export class WheelDeadline {
  dueTick = 0
  /** When the wheel looks at it next: not after it is due. */
  visitTick = 0
  /** -1: it is in no slot. */
  slot = -1
  /** Its time has come, and it was neither stopped nor moved since. */
  isDue = false
  previous: WheelDeadline | undefined = undefined
  next: WheelDeadline | undefined = undefined
  readonly #wheel: TimerWheel
  readonly #target: Timed

  constructor(wheel: TimerWheel, target: Timed) {
    this.#wheel = wheel
    this.#target = target
  }

  restart(ms: number) {
    this.#wheel.move(this, ms)
  }

  stop() {
    this.#wheel.remove(this)
  }

  /** Called by the wheel. Nothing happens if an earlier one of the same tick has stopped or moved it. */
  fire() {
    if (!this.isDue) return
    this.isDue = false
    this.#target.onDue()
  }
}

const wheel = new TimerWheel()

/** Starts a deadline in the wheel of this process. It may be up to a tenth of a second late. */
export const startDeadline = (ms: number, target: Timed): WheelDeadline => wheel.start(ms, target)
