import type { Command, Topics } from './command.ts'

export function helpForAll(topics: Topics): string {
  const sections = Object.entries(topics).flatMap(([topic, commands]) => [
    `gatehouse operator ${topic}${Object.hasOwn(commands, '') ? '' : ' <command>'}`,
    '',
    ...Object.values(commands).flatMap(({ synopsis, help }) => [
      `  ${synopsis}`,
      ...help.map((line) => `      ${line}`),
    ]),
    '',
  ])
  const lines = [
    'Usage: gatehouse operator <topic> <command> [flags]',
    '',
    'Administers the organizations of a Gatehouse service and their credits, directly in the database.',
    'In a checkout of the repository the command is ./dev operator.',
    '',
    ...sections,
    '  --json   prints the result as JSON',
    '  --help   prints this help, or that of one command',
    '',
    'Needs DATABASE_URL and MASTER_KEYS in the environment, with the values of the service.',
    'Exit codes: 0 done, 1 failed, 2 wrong arguments.',
  ]
  return `${lines.join('\n')}\n`
}

export const helpForOne = (topic: string, command: Command): string =>
  `${usageOf(topic, command)}\n${command.help.join('\n')}\n`

export const usageOf = (topic: string, { synopsis }: Command): string =>
  `Usage: gatehouse operator ${topic} ${synopsis} [--json]\n`
