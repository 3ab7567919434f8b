import { type Attack, repeatAtOnce } from './attack.ts'

/** About 100 KB. */
const configOf = (number: number) => ({
  name: `Large ${number}`,
  rules: {
    denylist: Array.from({ length: 1000 }, (_, index) => `${number} ${index} ${'x'.repeat(90)}`),
  },
})

/** Pages of a history of large configurations. */
export const largePages: Attack = {
  name: 'pages of 4 MB of the history',
  async prepare({ configure }) {
    for (let number = 0; number < 40; number++) await configure(configOf(number))
  },
  async send({ baseUrl, adminKey }, until) {
    const url = `${baseUrl}/api/policy-gateway/history?limit=100`
    const headers = { authorization: `Bearer ${adminKey}` }
    await repeatAtOnce(2, until, async () => {
      const read = async () => (await fetch(url, { headers, signal: until })).arrayBuffer()
      await read().catch(() => undefined)
    })
  },
}
