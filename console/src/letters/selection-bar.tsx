/** What is chosen, and what can be done with it. */
import { Anchor, Button, Group, Text } from '@mantine/core'
import { ActButton } from '../kit/act-button.tsx'
import { grouped } from '../time/format.ts'
import type { LetterList } from './use-letter-list.ts'
import type { ManyActs } from './use-many-acts.ts'
import type { Selection } from './use-selection.ts'

export interface SelectionBarProps {
  readonly list: LetterList
  readonly selection: Selection
  readonly acts: ManyActs
}

export function SelectionBar({ list, selection, acts }: SelectionBarProps) {
  const count = selection.letters.length
  const more = list.total === null ? null : list.total.total > count || !list.total.exact
  return (
    <Group gap="xs" role="group" aria-label="Selection">
      <Text size="sm" fw={600} role="status">
        {selection.isAll ? `All ${totalText(list)} selected` : `${grouped(count)} selected`}
      </Text>
      <ActButton
        size="compact-sm"
        variant="filled"
        needs="operator"
        refusal={acts.refusals.retry}
        hotkey="r"
        onClick={acts.retry}
      >
        Retry…
      </ActButton>
      <ActButton
        size="compact-sm"
        variant="default"
        needs="operator"
        refusal={acts.refusals.move}
        onClick={acts.move}
      >
        Move…
      </ActButton>
      <ActButton
        size="compact-sm"
        variant="default"
        needs="operator"
        refusal={acts.refusals.discard}
        hotkey="d"
        onClick={acts.discard}
      >
        Discard…
      </ActButton>
      <ActButton
        size="compact-sm"
        variant="default"
        needs="operator"
        refusal={acts.refusals.restore}
        onClick={acts.restore}
      >
        Restore…
      </ActButton>
      <Button size="compact-sm" variant="subtle" onClick={selection.clear}>
        Clear
      </Button>
      {!selection.isAll && more === true && (
        <Anchor component="button" type="button" size="sm" onClick={selection.selectAll}>
          Select all {totalText(list)}
        </Anchor>
      )}
    </Group>
  )
}

function totalText({ total }: LetterList): string {
  if (total === null) return 'matching'
  return `${total.exact ? '' : 'at least '}${grouped(total.total)} matching`
}
