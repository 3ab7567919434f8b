import cluster from 'node:cluster'

import {
  type ProcessPlace,
  type ProcessMessage,
  type Question,
  supervisedArgument,
  type SupervisorMessage,
} from './messages.ts'

export type Answers = {
  readiness(): Promise<string[]> | string[]
  metrics(): Promise<object>
  describePolicies(organizationId: string): object
}

/** Whether this process was started by a supervisor of ours, and not by another program that uses node:cluster. */
export const isSupervised = () => cluster.isWorker && process.argv.includes(supervisedArgument)

/** The supervisor may end at any time; then the message is not needed. */
const send = (message: ProcessMessage) =>
  void process.send?.(message, undefined, undefined, () => undefined)

/** Asks the supervisor for the place of this process. If the supervisor ends before it answers, this process does too. */
export function receivePlace<Settings>(): Promise<ProcessPlace<Settings>> {
  return new Promise((resolve) => {
    process.on('message', function onMessage(message: SupervisorMessage<Settings>) {
      if (message.kind !== 'place') return
      process.off('message', onMessage)
      resolve(message.place)
    })
    send({ kind: 'place_wanted' })
  })
}

/** Answers what the supervisor asks from now on. */
export function answerSupervisor(answers: Answers) {
  process.on('message', (message: SupervisorMessage<unknown>) => {
    if (message.kind !== 'question') return
    const { id, question } = message
    // Without an answer the supervisor counts this process as one that does not answer.
    void answer(answers, question).then(
      (answer) => send({ kind: 'answer', id, answer }),
      () => undefined,
    )
  })
}

/** Tells the supervisor that this process serves. From now on it drains by itself if the supervisor ends. */
export function reportUp(address: string) {
  // Without it, node:cluster would end this process at once when the supervisor ends.
  if (cluster.worker) cluster.worker.exitedAfterDisconnect = true
  send({ kind: 'up', address })
}

async function answer(answers: Answers, question: Question): Promise<unknown> {
  switch (question.about) {
    case 'readiness':
      return answers.readiness()
    case 'metrics':
      return answers.metrics()
    case 'policies':
      return answers.describePolicies(question.organizationId)
  }
}
