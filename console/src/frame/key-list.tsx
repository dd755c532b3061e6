/** `?`: all keys that work now, and the switch that turns them off. */
import { Group, Kbd, Modal, SimpleGrid, Stack, Switch, Text, Title } from '@mantine/core'
import { type Key, useKeyGroups, useKeySwitch } from '../keys/keys.tsx'

const NAMES: Readonly<Record<string, string>> = { ' ': 'Space', Escape: 'Esc', X: 'Shift x' }

export function KeyList({ isOpen, close }: { readonly isOpen: boolean; readonly close: () => void }) {
  const groups = useKeyGroups()
  const { isOn, setOn } = useKeySwitch()
  // Those of the screen, which are looked for, before those that are always there.
  const shown = groups.toSorted((a, b) => Number(a.title === 'Everywhere') - Number(b.title === 'Everywhere'))
  return (
    <Modal
      opened={isOpen}
      onClose={close}
      title="Keys"
      size="lg"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Stack>
        <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="xl">
          {shown.map(({ title, keys }) => (
            <Stack key={`${title} ${keys[0]?.keys}`} gap={4}>
              <Title order={3} size="h6">
                {title}
              </Title>
              {keys.map((key) => (
                <KeyLine key={key.keys} of={key} />
              ))}
              {title === 'Everywhere' && (
                <KeyLine of={{ keys: 'Ctrl/⌘+K', does: 'open the command palette' }} />
              )}
            </Stack>
          ))}
        </SimpleGrid>
        <Switch
          checked={isOn}
          onChange={(event) => setOn(event.currentTarget.checked)}
          label="Keys work"
          description="Switch them off if you speak to the computer, or use tools with keys of their own."
        />
      </Stack>
    </Modal>
  )
}

function KeyLine({ of: { keys, does } }: { readonly of: Pick<Key, 'keys' | 'does'> }) {
  return (
    <Group justify="space-between" wrap="nowrap">
      <Text size="sm">{does}</Text>
      <Group gap={4} wrap="nowrap">
        {(keys === ' ' ? [' '] : keys.split(' ')).map((each) => (
          <Kbd key={each}>{NAMES[each] ?? each}</Kbd>
        ))}
      </Group>
    </Group>
  )
}
