/** What ships, by the name of its module: the command, and the programs that it starts. */
export const programs = {
  gatehouse: 'program/gatehouse.ts',
  main: 'service/src/main.ts',
  thread: 'service/src/thread.ts',
  migrate: 'service/src/migrate.ts',
  operator: 'service/src/operator.ts',
  cli: 'cli/src/main.ts',
}

/** Programs of the tests that run code of the service. They are bundled in the same way, and never ship. */
export const testPrograms = {
  'limited-main': 'service/src/testing/limited-main.ts',
  'many-tenants': 'service/src/testing/many-tenants.ts',
  thread: programs.thread,
}
