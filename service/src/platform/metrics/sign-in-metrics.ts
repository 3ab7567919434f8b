import { Counter, Gauge, type Registry } from 'prom-client'

/** The sign-in of members with a provider. */
export function signInMetrics(registers: Registry[]) {
  return {
    signInFileIsStale: new Gauge({
      name: 'gatehouse_sign_in_file_stale',
      help: '1 while SIGN_IN_FILE is invalid and its last valid contents stay in use.',
      aggregator: 'max',
      registers,
    }),
    signIns: new Counter({
      name: 'gatehouse_sign_ins_total',
      help: 'Sign-ins with a provider, by result: `signed_in`, or why they were refused.',
      labelNames: ['result'],
      registers,
    }),
  }
}
