/** What happens every so often is driven by the injected clock, through one loop in `core/`. */
import { expect, it } from 'vitest'
import { files } from './product.ts'

it('has no timer of its own outside of core', () => {
  const timers = files.filter(
    ({ path, identifiers }) => !path.startsWith('core/') && identifiers.has('setInterval'),
  )
  expect(timers.map(({ path }) => path)).toEqual([])
})
