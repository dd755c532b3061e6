/** Every statement of runs with values that make a scan of their table show. */
import { type Calls, LATER, NOW } from './explain.ts'

const id = (number: number): string => `r${String(number).padStart(19, '0')}`
/** The first few are open. */
const OPEN = id(3)

export const RUN_CALLS: Calls = {
  'runs.insert': [id(0), 'purge', null, 'c/k', '{}', '{}', 'actor', NOW, 10, null, 'owner', LATER],
  'runs.oldest': ['', 100],
  'runs.removeThese': [`{${OPEN}}`],
  'runs.remove': [OPEN],
  'runs.note': [OPEN, 'owner', 1, 0, 0, null],
  'runs.read': [id(50)],
  'runs.named': ['name-3'],
  'runs.page': [id(50), 25],
  'runs.open': [],
  'runs.left': [NOW],
  'runs.take': [NOW, OPEN, 'owner', LATER],
  'runs.renew': ['owner', LATER, `{${OPEN}}`],
  'runs.leave': [OPEN, 'owner'],
  'runs.lock': [OPEN],
  'runs.change': [OPEN, 'running', null, '{}', null, 10, 5, 0, 0, null, null, 1, 'owner', LATER],
  'runs.commits': [],
}
