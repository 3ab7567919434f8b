import { subscribe } from 'node:diagnostics_channel'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { Socket } from 'node:net'
import { GCProfiler, getHeapStatistics, promiseHooks } from 'node:v8'
import { isMainThread } from 'node:worker_threads'

// Loaded into a process before its own code. Counts what the process does between two messages of its parent, 'start'
// and 'stop', and answers the second with the counts. With 'start promises' it counts promises, which slows everything
// down, so the other counts are taken without it.

export type Counted = {
  /** Writes to the connections of callers, as many as the kernel was asked for. */
  socketWrites: number
  /** Writes to standard output that the event loop waited for. */
  blockingLogWrites: number
  /** All writes to standard output. */
  logWrites: number
  promises: number
  heapBytes: number
}

const none: Counted = {
  socketWrites: 0,
  blockingLogWrites: 0,
  logWrites: 0,
  promises: 0,
  heapBytes: 0,
}
let counted: Counted = { ...none }
let stopPromises: Function | undefined
let collections: GCProfiler | undefined
let heapAtStart = 0

const standardOutput = 1
const writeMethods = ['writev', 'writeBuffer', 'writeUtf8String', 'writeLatin1String'] as const
type Write = (...args: unknown[]) => unknown
type Handle = Record<(typeof writeMethods)[number], Write>

/** A connection's handle is the last place before the kernel: joined writes have been joined there. */
function countWritesOf(handle: Handle) {
  for (const method of writeMethods) {
    const write = handle[method]
    handle[method] = function countedWrite(this: Handle, ...args) {
      counted.socketWrites++
      return write.apply(this, args)
    }
  }
}

function countLogWrites() {
  const { write, writeSync } = fs as unknown as Record<'write' | 'writeSync', Write>
  const onWrite = (fd: unknown, isBlocking: boolean) => {
    if (fd !== standardOutput) return
    counted.logWrites++
    if (isBlocking) counted.blockingLogWrites++
  }
  Object.assign(fs, {
    write: (...args: unknown[]) => (onWrite(args[0], false), write.apply(fs, args)),
    writeSync: (...args: unknown[]) => (onWrite(args[0], true), writeSync.apply(fs, args)),
  })
  syncBuiltinESMExports()
  // A pipe as standard output is a socket to Node, and does not block.
  const prototype = Socket.prototype as unknown as { _writeGeneric: Write }
  const { _writeGeneric } = prototype
  prototype._writeGeneric = function countedWrite(this: { fd?: number }, ...args) {
    onWrite(this.fd, false)
    return _writeGeneric.apply(this, args)
  }
}

function start(hasPromises: boolean) {
  counted = { ...none }
  if (hasPromises) stopPromises = promiseHooks.onInit(() => void counted.promises++)
  collections = new GCProfiler()
  collections.start()
  heapAtStart = getHeapStatistics().used_heap_size
}

/** What was allocated is what there is more of, and what was collected meanwhile. */
function stop(): Counted {
  stopPromises?.()
  stopPromises = undefined
  const heapAtEnd = getHeapStatistics().used_heap_size
  const { statistics = [] } = collections?.stop() ?? {}
  let collected = 0
  for (const { beforeGC, afterGC } of statistics) {
    collected += beforeGC.heapStatistics.usedHeapSize - afterGC.heapStatistics.usedHeapSize
  }
  return { ...counted, heapBytes: heapAtEnd - heapAtStart + collected }
}

function listen() {
  subscribe('net.server.socket', (message) => {
    const { socket } = message as { socket: { _handle: Handle | null } }
    if (socket._handle) countWritesOf(socket._handle)
  })
  countLogWrites()
  process.on('message', (message) => {
    if (message === 'start' || message === 'start promises') start(message === 'start promises')
    if (message === 'stop') process.send?.(stop())
  })
  // The channel to the parent must not keep a process alive that has ended otherwise.
  process.channel?.unref()
}

if (isMainThread && process.send) listen()
