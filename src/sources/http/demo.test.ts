import { expect, it } from 'vitest'
import { instant } from '../../core/clock.ts'
import { signatureOf } from '../../core/signature.ts'
import { Chance } from '../../demo/story/chance.ts'
import { REPORTERS } from './demo.ts'

it('each who reports in a demo has one cause, whatever varies in its words', () => {
  const now = instant(1_798_804_800_000_000n)
  const signatures = REPORTERS.map(({ report }) => {
    const [one, other] = [1, 2].map((seed) => {
      const { errorClass, errorMessage, errorStack } = report({ chance: new Chance(seed), now })
      // Texts, as reporters write them.
      const described = { errorClass, errorMessage, errorStack } as Parameters<typeof signatureOf>[0]
      return signatureOf(described).fingerprint
    })
    expect(one).toBe(other)
    return one
  })
  expect(new Set(signatures).size).toBe(REPORTERS.length)
})
