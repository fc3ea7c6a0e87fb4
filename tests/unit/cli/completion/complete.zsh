# zsh -f complete.zsh SCRIPT LINE...: source a completion script and print each line as zsh completes it.
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PROMPT= RPROMPT=; autoload -Uz compinit; compinit -u -D; source ${(q)1}; setopt no_beep; bindkey '^I' complete-word; show() { print -r -- \"<\$BUFFER>\"; BUFFER= }; zle -N show; bindkey '^X' show; print rea''dy"
zpty -r shell output '*ready*'
shift
for line; do
  zpty -w -n shell "$line"$'\t\x18'
  zpty -r shell output '*<*>*'
  print -r -- "${${output##*<}%%>*}"
done
zpty -d shell
