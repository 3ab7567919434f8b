import { createClient } from 'redis'

import { within } from './deadline.ts'

export type Redis = {
  publish(channel: string, message: string): Promise<void>
  /** Calls back for every message, also after reconnections; what was sent meanwhile is lost. */
  subscribe(channel: string, onMessage: (message: string) => void): Promise<void>
  close(): void
}

const commandDeadlineMs = 40

/**
 * Redis may be lost at any moment, so nothing here waits for it: no offline queue, no resending, and
 * every command ends within its deadline. The client's own timeout does not cover a command already
 * sent, hence the timer. Reconnection goes on in the background for ever.
 */
export function connectRedis(
  url: string,
  { onProblem, onReady }: { onProblem: (error: Error) => void; onReady: () => void },
): Redis {
  const client = createClient({
    url,
    disableOfflineQueue: true,
    socket: {
      connectTimeout: 200,
      reconnectStrategy: (retries) =>
        Math.min(50 * 2 ** Math.min(retries, 6), 1000) * (0.8 + Math.random() * 0.4),
    },
  })
  const subscriber = client.duplicate({ disableOfflineQueue: false })
  for (const connection of [client, subscriber]) {
    connection.on('error', onProblem)
    connection.on('ready', onReady)
    // Resolves with the first connection, however late; failures are reported through 'error'.
    connection.connect().catch(onProblem)
  }
  return {
    publish: async (channel, message) => {
      await within(commandDeadlineMs, noAnswer, () => client.publish(channel, message))
    },
    subscribe: (channel, onMessage) => subscriber.subscribe(channel, onMessage),
    close: () => {
      for (const connection of [client, subscriber]) connection.destroy()
    },
  }
}

const noAnswer = () => new Error('Redis did not answer in time')
