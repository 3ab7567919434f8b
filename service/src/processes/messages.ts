/** What a supervisor gives a process that it has started: its number, from 1, and the settings it runs with. */
export type ProcessPlace<Settings> = { number: number; settings: Settings }

export type Question =
  | { about: 'readiness' }
  | { about: 'metrics' }
  | { about: 'policies'; organizationId: string }

/** From a process to its supervisor. A process asks for its place first, and says when it serves. */
export type ProcessMessage =
  | { kind: 'place_wanted' }
  | { kind: 'up'; address: string }
  | { kind: 'answer'; id: number; answer: unknown }

export type SupervisorMessage<Settings> =
  | { kind: 'place'; place: ProcessPlace<Settings> }
  | { kind: 'question'; id: number; question: Question }

/** The argument by which a process knows that its supervisor is ours. */
export const supervisedArgument = '--supervised'
